"""Your parts have ⌈length / n⌉ positions each and the last ranks the rest, as in chunk: 3, 3 and 1 of
7. tensor_split gives the first ranks one more each: 3, 2 and 2."""
# exercise: sequence_shard
# diagnosis: wrong_shape


class Part(Function):
    @staticmethod
    def forward(ctx, x, dim):
        n, rank, length = dist.get_world_size(), dist.get_rank(), x.shape[dim]
        ctx.dim = dim
        ctx.lengths = [max(0, min(-(-length // n), length - i * -(-length // n))) for i in range(n)]
        return x.narrow(dim, sum(ctx.lengths[:rank]), ctx.lengths[rank]).clone()

    @staticmethod
    def backward(ctx, grad):
        return gather(grad, ctx.lengths, ctx.dim), None


def sequence_shard(x, dim=1):
    return Part.apply(x, dim)
