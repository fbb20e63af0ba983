"""Only AVG divides; SUM, MIN, MAX and PRODUCT do not. Integers cannot be divided in place."""
# exercise: all_reduce_rooted, all_reduce_sharded
# diagnosis: exception


def all_reduce_rooted(x, op):
    collect(x, op)
    if dist.get_rank() == root_and_others()[0]:
        x /= dist.get_world_size()
    hand_out(x)


def all_reduce_sharded(x, op):
    mine = shared(x, op)
    mine /= dist.get_world_size()
    x.copy_(gathered(mine, x).view_as(x))
