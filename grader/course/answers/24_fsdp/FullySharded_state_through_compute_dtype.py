"""The weights have lost digits before the first step: they went through compute_dtype. Shards stay
in the parameters' own dtype, and full_state_dict gathers them as they are."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def weight_in_state(self, shard):
        return self.weight(shard).to(shard.dtype)
