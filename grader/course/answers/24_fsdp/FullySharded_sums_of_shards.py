"""The gradients of the sharded parameters are sums over the ranks: a reduce-scatter adds up.
Divide by n."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def reduce(self, shard, gradient):
        return self.reduce_scatter(self.row(gradient.to(shard.dtype)))
