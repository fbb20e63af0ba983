"""The second step computes with the weights of the first: the optimizer has changed the shards,
and they have to be gathered anew in each forward."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def __init__(self, module, compute_dtype=None):
        super().__init__(module, compute_dtype)
        self.first = {}

    def weight(self, shard):
        if shard not in self.first:
            # numbers, and no tensor that would count among the weights that are held
            self.first[shard] = super().weight(shard).tolist()
        return torch.tensor(self.first[shard], dtype=self.compute_dtype or shard.dtype)
