"""The gradients of the shards are divided by n twice: after backward's reduce-scatter, and again in
finish_gradient_synchronization. There, only those of the small parameters are sums still.
"""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def finish_gradient_synchronization(self):
        for p in self.parameters():
            if p.grad is not None:
                if p not in self.shapes:
                    dist.all_reduce(p.grad)
                p.grad.copy_(self.average(p.grad))
