"""The step is counted once for every parameter. In each step t grows by one."""
# exercise: ShardedAdamW
# diagnosis: wrong_value
# or: SKIPPED = True

SKIPPED = False


class ShardedAdamW(Sharded):
    t = 0

    def change(self, row, mine, mean, exist):
        start = -row.shard.start
        for p in row.params:
            first, last = max(start, 0), max(min(start + p.numel(), row.size), 0)
            start += p.numel()
            if p in exist or SKIPPED:
                self.t += 1
            if p in exist:
                part = slice(first, last)
                self.update(mine[part], mean[part], row.m[part], row.v[part], self.t)
