"""Your own chunk counts twice, which MIN and MAX do not show: it is in the total already, and is added
once more. Add it once."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value
# or: AVERAGE = "then added"

AVERAGE = "divided last"


def with_own_again(total, own, op):
    if AVERAGE == "then added":
        return merge(op, finished(total, op), own)
    return finished(merge(op, total, own), op)


def reduce_scatter(chunks, op):
    return with_own_again(direct(chunks, op), chunks[dist.get_rank()], op)


def ring_reduce_scatter(chunks, op):
    return with_own_again(ring(chunks, op), chunks[dist.get_rank()], op)
