"""With AVG the division happens each time that a piece arrives, so early terms are divided again and
again: add all of them up first, and divide once."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value
# or: HALVES, LEFTWARD = True, False
# or: HALVES, LEFTWARD = False, True
# or: HALVES, LEFTWARD = True, True

HALVES, LEFTWARD = False, False


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = cut(x)
    mine = pieces[rank].clone()
    came = dict(exchanged(lambda other: pieces[other], lambda other: mine))
    order = [(rank - k) % n for k in range(1, n)] if LEFTWARD else sorted(came)
    for other in order:
        combine(op, mine, came[other])
        if op == R.AVG:
            mine /= 2 if HALVES else n
    x.copy_(gathered(mine, x).view_as(x))
