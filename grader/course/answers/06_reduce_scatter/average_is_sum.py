"""AVG is the sum divided by the number of ranks, and this is the sum: nothing divides it, or what
is divided is thrown away (x = x / n makes a new tensor, x /= n does not)."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value


def reduce_scatter(chunks, op):
    return direct(chunks, op)


def ring_reduce_scatter(chunks, op):
    return ring(chunks, op)
