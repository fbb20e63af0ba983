"""That is your own chunks[rank], with nothing of the others in it. What comes has to be combined
with it, after any wait(), in the tensor that you return."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value
# or: DIVIDES = False

DIVIDES = True


def own(chunks, op):
    mine = chunks[dist.get_rank()].clone()
    return finished(mine, op) if DIVIDES else mine


def reduce_scatter(chunks, op):
    return own(chunks, op)


def ring_reduce_scatter(chunks, op):
    return own(chunks, op)
