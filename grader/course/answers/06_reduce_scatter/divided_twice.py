"""The sum is divided twice: add up the chunks as they are, and divide by n once, at the end."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value


def reduce_scatter(chunks, op):
    return finished(finished(direct(chunks, op), op), op)


def ring_reduce_scatter(chunks, op):
    return finished(finished(ring(chunks, op), op), op)
