"""After __init__ whole weights are still there. A shard that is a view keeps the memory of all of
them: make it a copy, with clone(), and let no attribute keep the old parameters."""
# exercise: FullySharded
# diagnosis: memory_limit


class FullySharded(ShardedModule):
    def __init__(self, module, compute_dtype=None):
        old = dict(module.named_parameters())
        super().__init__(module, compute_dtype)
        self.old = old
