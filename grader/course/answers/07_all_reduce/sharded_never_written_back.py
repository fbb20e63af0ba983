"""x is as it was on every rank. Is the result in a copy? flatten() and reshape may copy, padding
always does, and `x = …` only gives the name x to another tensor. Write the result back, as in
x.copy_(result)."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_sharded(x, op):
    mine = shared(x, op)
    if op == R.AVG:
        mine /= dist.get_world_size()
    x = gathered(mine, x).view_as(x)
