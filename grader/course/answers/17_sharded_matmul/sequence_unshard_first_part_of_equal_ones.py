"""Every rank takes rank 0's part of the gradient. Rank r's part of x lies at part r of the whole,
and so does its gradient.
"""
# exercise: sequence_unshard
# diagnosis: wrong_gradient


class JoinFirst(Join):
    @staticmethod
    def forward(ctx, part, lengths, dim):
        ctx.dim, ctx.length = dim, part.shape[dim]
        return gather(part, lengths, dim)

    @staticmethod
    def backward(ctx, grad):
        return grad.narrow(ctx.dim, 0, ctx.length), None, None


def sequence_unshard(x_shard, full_length, dim=1):
    return JoinFirst.apply(x_shard, lengths(full_length), dim)
