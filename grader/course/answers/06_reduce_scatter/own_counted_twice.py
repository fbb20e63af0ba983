"""Your own chunk counts twice, which MIN and MAX do not show: the total begins with it, and it is
added once more. Add only what the others send."""
# exercise: reduce_scatter
# diagnosis: wrong_value
# or: AVERAGE = "then added"

AVERAGE = "divided last"


def reduce_scatter(chunks, op):
    own, total = chunks[dist.get_rank()], direct(chunks, op)
    if AVERAGE == "then added":
        return merge(op, finished(total, op), own)
    return finished(merge(op, total, own), op)
