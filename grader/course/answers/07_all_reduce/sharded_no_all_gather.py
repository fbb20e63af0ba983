"""Every rank has its own piece of the result in x, and no other. The second half is missing, which
is the all-gather."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_sharded(x, op):
    mine = shared(x, op)
    if op == R.AVG:
        mine /= dist.get_world_size()
    begin = sum(len(piece) for piece in cut(x)[: dist.get_rank()])
    flat = x.flatten()
    piece = flat[begin : begin + len(mine)]
    piece.copy_(mine[: len(piece)])
    x.copy_(flat.view_as(x))
