"""Every rank has the part of rank 0. Rank r takes part r."""
# exercise: sequence_shard
# diagnosis: wrong_shape
# or: GATHERED = False


GATHERED = True


class First(Split):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim, ctx.length = dim, x.shape[dim]
        return x.tensor_split(dist.get_world_size(), dim)[0].clone()


def sequence_shard(x, dim=1):
    if GATHERED:
        return First.apply(x, dim)
    return x.tensor_split(dist.get_world_size(), dim)[0].clone()
