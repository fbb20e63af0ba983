"""Each rank has updated its own shard, and the other shards are as they were. Gather them, and
copy them back into the parameters."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def gather(self, row, weights, mine):
        weights[row.shard] = mine
