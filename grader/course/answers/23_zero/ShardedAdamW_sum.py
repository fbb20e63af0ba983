"""The gradients are added up, but not divided by n. Adam nearly hides that: only eps notices how
large a gradient is."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def mean(self, row):
        mean = torch.empty_like(row.m)
        dist.reduce_scatter_tensor(mean, row.flat([p.grad for p in row.params]))
        return mean
