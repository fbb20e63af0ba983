"""For MIN you take the maximum: each op needs its own operation."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value


def reduce_scatter(chunks, op):
    return finished(direct(chunks, R.MAX if op == R.MIN else op), op)


def ring_reduce_scatter(chunks, op):
    return finished(ring(chunks, R.MAX if op == R.MIN else op), op)
