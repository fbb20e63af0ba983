"""The second step computes with weights of the first, in backward if not in forward: the optimizer
has changed the shards since, so each forward and each backward needs a gather of its own."""
# exercise: FullySharded
# diagnosis: wrong_value
# or: IN_FORWARD = False

IN_FORWARD = True


class FullySharded(ShardedModule):
    def __init__(self, module, compute_dtype=None):
        super().__init__(module, compute_dtype)
        self.first = {}

    def weight_of_the_first_step(self, shard):
        if shard not in self.first:
            # numbers, and no tensor that would count among the weights that are held
            self.first[shard] = self.weight(shard).tolist()
        return torch.tensor(self.first[shard], dtype=self.compute_dtype or shard.dtype)

    def weight_in_forward(self, shard):
        return self.weight_of_the_first_step(shard) if IN_FORWARD else self.weight(shard)

    def weight_in_backward(self, shard):
        if shard not in self.gathered:
            self.gathered[shard] = self.weight_of_the_first_step(shard)
        return self.gathered[shard]
