"""For AVG the sum is not divided as a whole: the part of the rank that adds up is divided and what
comes from the others is not, or the other way round. Add everything up first, and divide the sum
once."""
# exercise: all_reduce_rooted, all_reduce_sharded
# diagnosis: wrong_value
# or: DIVIDED = "own"

DIVIDED = "the others"


def all_reduce_rooted(x, op):
    if op == R.AVG and (dist.get_rank() == root_and_others()[0]) == (DIVIDED == "own"):
        x /= dist.get_world_size()
    collect(x, op)
    hand_out(x)


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    own = cut(x)[dist.get_rank()].clone()
    mine = shared(x, op)
    if op == R.AVG:
        others = mine - own
        mine = own / n + others if DIVIDED == "own" else own + others / n
    x.copy_(gathered(mine, x).view_as(x))
