"""The sum is divided by the number of ranks that have a gradient. One that is None counts as zero:
divide by n."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def mean(self, row):
        total = torch.empty_like(row.m)
        dist.reduce_scatter_tensor(total, row.flat([p.grad for p in row.params]))
        mine = torch.tensor([p.grad is not None for p in row.params]).to(torch.uint8)
        flags = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(flags, mine)
        counts = torch.stack(flags).sum(0).tolist()
        counts = [torch.full_like(p, max(k, 1)) for p, k in zip(row.params, counts)]
        return total / row.flat(counts)[row.shard].clamp(min=1)
