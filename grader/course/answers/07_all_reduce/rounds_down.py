"""SUM is right, and the mean is rounded down, by // or by a conversion to integers. AVG is only for
floating-point numbers, and / is their division."""
# exercise: all_reduce_rooted, all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    collect(x, op)
    if op == R.AVG and dist.get_rank() == root_and_others()[0]:
        x //= dist.get_world_size()
    hand_out(x)


def all_reduce_sharded(x, op):
    mine = shared(x, op)
    if op == R.AVG:
        mine //= dist.get_world_size()
    x.copy_(gathered(mine, x).view_as(x))
