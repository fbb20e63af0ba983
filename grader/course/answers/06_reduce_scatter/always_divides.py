"""Only AVG divides, and it is required only for floating-point tensors: integers cannot be
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
