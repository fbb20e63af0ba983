"""The product is divided by n. The inner dimension is summed over: the parts are added up, and not
averaged.
"""
# exercise: row_parallel
# diagnosis: wrong_value
# or: INSIDE = False


INSIDE = True


class Mean(Sum):
    @staticmethod
    def forward(ctx, part):
        total = part.clone()
        dist.all_reduce(total)
        return total / dist.get_world_size()


def row_parallel(x_shard, weight_shard):
    part = x_shard @ weight_shard
    return Mean.apply(part) if INSIDE else Sum.apply(part) / dist.get_world_size()
