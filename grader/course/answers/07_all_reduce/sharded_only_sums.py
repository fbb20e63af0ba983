"""You get the sum where op says something else. Does op reach the reduce-scatter? Without op=… it
sums. And if you take SUM for AVG, divide once by the world size."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value
# or: SUMS, DIVIDES = True, False
# or: SUMS, DIVIDES = False, False

SUMS, DIVIDES = True, True


def all_reduce_sharded(x, op):
    mine = shared(x, R.SUM if SUMS else op)
    if DIVIDES and op == R.AVG:
        mine /= dist.get_world_size()
    x.copy_(gathered(mine, x).view_as(x))
