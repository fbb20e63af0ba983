"""There is padding inside the result. Cut each part to its own length before you put them together:
tensor_split makes the first full_length % n parts one longer than the others, so that 7 on 3 ranks
are 3, 2 and 2, and not 3, 3 and 1."""
# exercise: sequence_unshard
# diagnosis: wrong_value
# or: BACKWARD = "cuts as forward does"

BACKWARD = "tensor_split"


def arrange(parts, lengths, dim):
    return torch.cat(parts, dim).narrow(dim, 0, sum(lengths))


class JoinAndSplit(Function):
    @staticmethod
    def forward(ctx, part, lengths, dim):
        ctx.longest, ctx.dim = max(*lengths, 1), dim
        return gather(part.detach(), lengths, dim, arrange)

    @staticmethod
    def backward(ctx, grad):
        first = min(dist.get_rank() * ctx.longest, grad.shape[ctx.dim])
        last = min(first + ctx.longest, grad.shape[ctx.dim])
        return grad.narrow(ctx.dim, first, last - first).clone(), None, None


def sequence_unshard(x_shard, full_length, dim=1):
    if BACKWARD == "tensor_split":
        return join(x_shard, lengths(full_length), dim, arrange)
    return JoinAndSplit.apply(x_shard, lengths(full_length), dim)
