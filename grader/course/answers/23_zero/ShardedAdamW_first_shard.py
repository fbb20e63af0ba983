"""Every rank updates the first shard. The one of rank r begins at r times its length: take this
slice of the weights, and of each parameter what lies in it."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def change(self, row, mine, mean, exist):
        row.shard = slice(0, row.size)
        mine.copy_(row.flat(row.params)[row.shard])
        super().change(row, mine, mean, exist)
