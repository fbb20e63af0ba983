"""The gradients of sharded parameters are all-reduced. A rank needs no more of them than its
shard: dist.reduce_scatter_tensor gives it just that, for half the bytes."""
# exercise: FullySharded
# diagnosis: too_many_bytes


class FullySharded(ShardedModule):
    def reduce_scatter(self, row):
        dist.all_reduce(row)
        return row.chunk(dist.get_world_size())[dist.get_rank()]
