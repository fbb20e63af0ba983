"""In backward, a part begins where those of the ranks before it end. Where n does not divide the
length, the first ranks have one more, and that is not rank times one length:
grad.tensor_split(n, dim)[rank] is this rank's part."""
# exercise: sequence_unshard
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


def sequence_unshard(x_shard, full_length, dim=1):
    return JoinAt.apply(x_shard, lengths(full_length), dim, side_by_side)
