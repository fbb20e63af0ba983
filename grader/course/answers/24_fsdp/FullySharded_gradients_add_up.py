"""The gradients of the second step still contain those of the first, though the optimizer's
zero_grad was called in between."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def reduce(self, shard, gradient):
        return self.add_up(shard, super().reduce(shard, gradient))

    def finish_gradient_synchronization(self):
        super().finish_gradient_synchronization()
        for p in self.parameters():
            if p not in self.shapes and p.grad is not None:
                p.grad.copy_(self.add_up(p, p.grad))

    def add_up(self, p, gradient):
        p.total = getattr(p, "total", 0) + gradient
        return p.total.clone()
