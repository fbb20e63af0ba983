"""A parameter that is skipped loses its weights: begin with a copy of all weights of your shard,
so that those stay that no update touches."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def change(self, row, mine, mean, exist):
        updated = torch.zeros_like(mine)
        start = -row.shard.start
        for p in row.params:
            first, last = max(start, 0), max(min(start + p.numel(), row.size), 0)
            start += p.numel()
            if p in exist:
                part = slice(first, last)
                self.update(mine[part], mean[part], row.m[part], row.v[part], self.number(p))
                updated[part] = mine[part]
        mine.copy_(updated)
