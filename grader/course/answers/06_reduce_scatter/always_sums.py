"""Whatever op says, you sum: compare op with dist.ReduceOp.MIN and dist.ReduceOp.MAX."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value


def reduce_scatter(chunks, op):
    return finished(direct(chunks, R.SUM), op)


def ring_reduce_scatter(chunks, op):
    return finished(ring(chunks, R.SUM), op)
