"""In mixed precision the weights travel in their own dtype, in twice as many bytes. Cast the shard
before it is gathered."""
# exercise: FullySharded
# diagnosis: too_many_bytes


class FullySharded(ShardedModule):
    def gather(self, shard, dtype):
        return super().gather(shard, None).to(dtype or shard.dtype)
