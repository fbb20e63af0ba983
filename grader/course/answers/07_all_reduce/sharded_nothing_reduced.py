"""The pieces are put together, but nothing has been reduced: piece i is what rank i began with."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value
# or: DIVIDES = True

DIVIDES = False


def all_reduce_sharded(x, op):
    mine = cut(x)[dist.get_rank()].clone()
    if DIVIDES and op == R.AVG:
        mine /= dist.get_world_size()
    x.copy_(gathered(mine, x).view_as(x))
