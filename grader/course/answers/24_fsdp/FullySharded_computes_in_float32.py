"""compute_dtype is not what the layers compute in: cast their weights, gathered or replicated, and
their floating inputs."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def __init__(self, module, compute_dtype=None):
        super().__init__(module)
