"""Only AVG divides, and it is asked for on floating-point numbers alone: integers cannot be
divided in place."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: exception


def reduce_scatter(chunks, op):
    total = direct(chunks, op)
    total /= dist.get_world_size()
    return total


def ring_reduce_scatter(chunks, op):
    total = ring(chunks, op)
    total /= dist.get_world_size()
    return total
