"""There is padding in the result: it has more columns than the whole weight. Cut each piece to its
own width before you put them together."""
# exercise: column_parallel
# diagnosis: wrong_shape
# or: BACKWARD = "tensor_split"

BACKWARD = "as wide as the part"


class Padded(Function):
    @staticmethod
    def forward(ctx, part, lengths):
        ctx.lengths = lengths
        return gather(part.detach(), lengths, part.dim() - 1, arrange)

    @staticmethod
    def backward(ctx, grad):
        n, rank = dist.get_world_size(), dist.get_rank()
        if BACKWARD == "tensor_split":
            return grad.tensor_split(n, -1)[rank], None
        return grad.narrow(-1, sum(ctx.lengths[:rank]), ctx.lengths[rank]).clone(), None


def arrange(parts, lengths, dim):
    return torch.cat(parts, dim)


def column_parallel(x, weight_shard):
    y, widths = Share.apply(x) @ weight_shard, widths_of(weight_shard)
    if STYLE == "a backward of its own":
        return Padded.apply(y, widths)
    return join(y, widths, y.dim() - 1, arrange)
