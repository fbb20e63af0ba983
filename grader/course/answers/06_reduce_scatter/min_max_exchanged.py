"""MIN and MAX are swapped."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value


def reduce_scatter(chunks, op):
    return finished(direct(chunks, R.MAX if op == R.MIN else R.MIN if op == R.MAX else op), op)


def ring_reduce_scatter(chunks, op):
    return finished(ring(chunks, R.MAX if op == R.MIN else R.MIN if op == R.MAX else op), op)
