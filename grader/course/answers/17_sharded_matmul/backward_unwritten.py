"""Forward alone works, and a backward is not written yet: write backward(ctx, grad), which returns
a gradient, or None, for each argument of forward.
"""
# exercise: column_parallel, row_parallel, sequence_shard, sequence_unshard
# diagnosis: exception


class Unwritten(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError


def column_parallel(x, weight_shard):
    y = Unwritten.apply(x) @ weight_shard
    return join(y, widths_of(weight_shard), y.dim() - 1)


def row_parallel(x_shard, weight_shard):
    return Unwritten.apply(Sum.apply(x_shard @ weight_shard))


def sequence_shard(x, dim=1):
    return Unwritten.apply(Split.apply(x, dim))


def sequence_unshard(x_shard, full_length, dim=1):
    return Unwritten.apply(join(x_shard, lengths(full_length), dim))
