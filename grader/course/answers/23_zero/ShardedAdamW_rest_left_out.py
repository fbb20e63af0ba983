"""The last elements are never updated: those that are left over where n does not divide the number
of elements. Pad the row to n·⌈P/n⌉, and cut the padding off at the end."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class Row(Row):
    def __init__(self, params):
        n, rank = dist.get_world_size(), dist.get_rank()
        self.params = params
        self.size = sum(p.numel() for p in params) // n
        self.shard = slice(rank * self.size, (rank + 1) * self.size)
        self.m, self.v = params[0].detach().new_zeros(2, self.size)

    def flat(self, tensors):
        none = torch.zeros_like
        rows = [none(p) if t is None else t for p, t in zip(self.params, tensors)]
        return torch.cat([one.flatten() for one in rows]).detach()


class ShardedAdamW(Sharded):
    def mean(self, row):
        n, mean = dist.get_world_size(), torch.empty_like(row.m)
        flat = row.flat([p.grad for p in row.params])
        dist.reduce_scatter_tensor(mean, flat[: n * row.size])
        return mean / n

    def gather(self, row, weights, mine):
        dist.all_gather_into_tensor(weights[: dist.get_world_size() * row.size], mine)
