"""Every rank ends with chunk 0, but rank r should end with chunk r."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value


def reduce_scatter(chunks, op):
    return finished(direct([chunks[0]] * len(chunks), op), op)


def ring_reduce_scatter(chunks, op):
    return finished(ring([chunks[0]] * len(chunks), op), op)
