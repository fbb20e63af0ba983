"""full_state_dict returns the weights in compute_dtype. Shards stay in the parameters' own dtype,
and full_state_dict gathers them as they are; only a gather for forward or backward casts."""
# exercise: FullySharded
# diagnosis: wrong_dtype


class FullySharded(ShardedModule):
    def shard(self, whole):
        return super().shard(whole).to(self.compute_dtype or whole.dtype)
