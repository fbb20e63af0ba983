"""The gradients of the small, replicated parameters are sums over the ranks. Divide them by n,
too."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def finish_gradient_synchronization(self):
        for p in self.parameters():
            if p not in self.shapes and p.grad is not None:
                dist.all_reduce(p.grad)
