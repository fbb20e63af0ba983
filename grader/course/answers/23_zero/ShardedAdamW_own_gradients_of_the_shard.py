"""Each shard is updated with the gradients of one rank, the one that it belongs to. Gradients have
to be averaged over the ranks first: reduce_scatter_tensor leaves each rank with the sum for its
shard."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def mean(self, row):
        return row.flat([p.grad for p in row.params])[row.shard]
