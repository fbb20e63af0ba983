"""For MAX you take the minimum: each op needs its own operation."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value


def reduce_scatter(chunks, op):
    return finished(direct(chunks, R.MIN if op == R.MAX else op), op)


def ring_reduce_scatter(chunks, op):
    return finished(ring(chunks, R.MIN if op == R.MAX else op), op)
