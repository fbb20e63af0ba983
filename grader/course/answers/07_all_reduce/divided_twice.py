"""The sum is divided by n twice. An average needs one division, in one place."""
# exercise: all_reduce_rooted, all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    n = dist.get_world_size()
    collect(x, op)
    if op == R.AVG and dist.get_rank() == root_and_others()[0]:
        x /= n
    hand_out(x)
    if op == R.AVG:
        x /= n


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    mine = shared(x, op)
    if op == R.AVG:
        mine /= n
    x.copy_(gathered(mine, x).view_as(x))
    if op == R.AVG:
        x /= n
