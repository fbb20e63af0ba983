"""In backward, a rank's columns begin where those of the ranks before it end. Where the widths
differ, that is not rank times one width: add up the widths before it, or take
grad.tensor_split(n, -1)[rank]."""
# exercise: column_parallel
# diagnosis: wrong_gradient
# or: START = "rank · longest"
# or: START = "rank · longest, cut off"
# or: START = "rank · shortest"


START = "rank · own"


class JoinAt(Join):
    @staticmethod
    def backward(ctx, grad):
        n, rank = dist.get_world_size(), dist.get_rank()
        parts = lengths(grad.shape[ctx.dim])
        own = parts[rank]
        if START == "rank · longest, cut off":
            at = torch.arange(rank * max(parts), rank * max(parts) + own)
            return grad.index_select(ctx.dim, at[at < sum(parts)]), None, None, None
        if START == "rank · longest":
            start = min(rank * max(parts), sum(parts) - own)
        else:
            start = rank * (own if START == "rank · own" else sum(parts) // n)
        return grad.narrow(ctx.dim, start, own), None, None, None


def column_parallel(x, weight_shard):
    y = Share.apply(x) @ weight_shard
    return JoinAt.apply(y, widths_of(weight_shard), y.dim() - 1, side_by_side)
