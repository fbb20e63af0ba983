"""FullySharded is an nn.Module: class FullySharded(nn.Module), with super().__init__() first, and
the wrapped module as its attribute module."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded:
    def __init__(self, module, compute_dtype=None):
        self.sharded = ShardedModule(module, compute_dtype)

    def __call__(self, *inputs):
        return self.sharded(*inputs)

    def __getattr__(self, name):
        return getattr(self.sharded, name)
