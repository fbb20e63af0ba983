"""A layer is gathered more than twice in a step. Autograd may ask for a saved weight several times
in one backward: keep it until its gradient is there."""
# exercise: FullySharded
# diagnosis: too_many_bytes


class FullySharded(ShardedModule):
    def weight_in_backward(self, shard):
        return self.weight(shard)
