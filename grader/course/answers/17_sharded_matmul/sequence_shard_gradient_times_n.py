"""The gradient of x is scaled by the number of ranks. Each part of it comes from one rank alone:
put them side by side; nothing is added up or averaged.
"""
# exercise: sequence_shard
# diagnosis: wrong_gradient
# or: AVERAGED = True


AVERAGED = False


class Scaled(Split):
    @staticmethod
    def backward(ctx, grad):
        whole, n = gather(grad, lengths(ctx.length), ctx.dim), dist.get_world_size()
        return whole / n if AVERAGED else whole * n, None


def sequence_shard(x, dim=1):
    return Scaled.apply(x, dim)
