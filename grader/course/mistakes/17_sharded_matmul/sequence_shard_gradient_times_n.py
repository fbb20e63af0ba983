"""The gradient of x is scaled by the number of ranks. Each part of it comes from one rank alone:
put them side by side; nothing is added up or averaged.
"""
# exercise: sequence_shard
# diagnosis: wrong_gradient
# or: FACTOR = lambda: 1 / dist.get_world_size()


FACTOR = dist.get_world_size


class Scaled(Split):
    @staticmethod
    def backward(ctx, grad):
        return gather(grad, lengths(ctx.length), ctx.dim) * FACTOR(), None


def sequence_shard(x, dim=1):
    return Scaled.apply(x, dim)
