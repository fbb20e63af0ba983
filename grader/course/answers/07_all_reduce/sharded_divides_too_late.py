"""With AVG each rank has divided its own piece alone, and the others are sums: the piece is divided
after it has been handed out. Divide it before you send it."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = len(cut(x)[0])
    mine = shared(x, op)
    whole = gathered(mine, x)
    own = slice(rank * size, (rank + 1) * size)
    if not EVEN:
        begin = sum(len(piece) for piece in cut(x)[:rank])
        own = slice(begin, begin + len(mine))
    if op == R.AVG:
        whole[own] /= n
    x.copy_(whole.view_as(x))
