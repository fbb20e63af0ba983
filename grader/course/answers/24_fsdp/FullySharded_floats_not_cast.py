"""Weights and inputs of a layer have different dtypes. With compute_dtype, cast whatever is
floating: the gathered weights, the small parameters, and the layer's inputs."""
# exercise: FullySharded
# diagnosis: exception
# or: UNCAST = "small parameters"
# or: UNCAST = "gathered weights"

UNCAST = "inputs"


class FullySharded(ShardedModule):
    def cast_input(self, value):
        return value if UNCAST == "inputs" else self.cast(value)

    def cast_small(self, p):
        return p if UNCAST == "small parameters" else self.cast(p)

    def weight(self, shard):
        return self.gather(shard, None if UNCAST == "gathered weights" else self.compute_dtype)
