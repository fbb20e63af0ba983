"""AVG is the sum divided by the number of ranks; the division is missing."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value


def reduce_scatter(chunks, op):
    return direct(chunks, op)


def ring_reduce_scatter(chunks, op):
    return ring(chunks, op)
