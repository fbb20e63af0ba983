"""Backward takes the parts for ⌈length / n⌉ positions each, and the last ranks' for the rest, as chunk
and split cut them. They have the lengths that tensor_split gives: of 4 on 3 ranks 2, 1 and 1."""
# exercise: sequence_shard
# diagnosis: wrong_gradient


class RoundedUp(Split):
    @staticmethod
    def backward(ctx, grad):
        n = dist.get_world_size()
        most = -(-ctx.length // n)
        cut = [max(0, min(most, ctx.length - i * most)) for i in range(n)]
        return gather(grad, cut, ctx.dim), None


def sequence_shard(x, dim=1):
    return RoundedUp.apply(x, dim)
