"""zero_grad leaves gradients behind: set p.grad = None for every parameter, or fill it with zeros.
"""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def zero_grad(self):
        pass
