"""The result is in what flatten() or reshape gave you. Of a transposed matrix that is a copy, and x
stays as it was. Write the result back: x.copy_(flat.view_as(x))."""

# exercise: all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_sharded(x, op):
    mine = shared(x, op)
    if op == R.AVG:
        mine /= dist.get_world_size()
    x.flatten().copy_(gathered(mine, x))
