"""With AVG one rank divides, and the pieces that other ranks have reduced stay sums. Each rank has
a piece of its own here: each divides that, before it hands it out."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value
# or: WHO = -1

WHO = 0


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    lengths = [len(piece) for piece in cut(x)]
    mine = shared(x, op)
    if op == R.AVG and rank == WHO % n:
        mine = mine / n
    whole = gathered(mine, x)
    x.copy_(whole.view_as(x))
