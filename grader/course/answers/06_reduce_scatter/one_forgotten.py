"""Not every op has a branch of its own, and one that has none is summed: compare op with MIN and
with MAX."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value
# or: FORGOTTEN = R.MAX

FORGOTTEN = R.MIN


def reduce_scatter(chunks, op):
    return finished(direct(chunks, R.SUM if op == FORGOTTEN else op), op)


def ring_reduce_scatter(chunks, op):
    return finished(ring(chunks, R.SUM if op == FORGOTTEN else op), op)
