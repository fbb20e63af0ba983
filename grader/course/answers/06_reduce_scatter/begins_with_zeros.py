"""The result is never above 0 for MIN, or never below 0 for MAX: you begin with zeros, and often 0
is smaller, or larger, than all the numbers. Begin with a chunk: chunks[rank].clone()."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value
# or: LEAST = 2

#: The least number of ranks with which it happens.
LEAST = 1


def with_zeros(total, op):
    return merge(op, torch.zeros_like(total), total) if dist.get_world_size() >= LEAST else total


def reduce_scatter(chunks, op):
    return finished(with_zeros(direct(chunks, op), op), op)


def ring_reduce_scatter(chunks, op):
    return finished(with_zeros(ring(chunks, op), op), op)
