"""The result is never above 0 for MIN, or never below 0 for MAX: 0, or a number close to it, takes
part, and is often smaller, or larger, than all the others. Begin with a chunk:
chunks[rank].clone(). (torch.finfo(...).tiny is the smallest positive number; .min is the smallest
of all.)"""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value
# or: LEAST = 2
# or: KINDS = "floats"

#: The least number of ranks with which it happens.
LEAST = 1
KINDS = "all"


def with_zeros(total, op):
    if dist.get_world_size() < LEAST or KINDS == "floats" and not total.is_floating_point():
        return total
    return merge(op, torch.zeros_like(total), total)


def reduce_scatter(chunks, op):
    return finished(with_zeros(direct(chunks, op), op), op)


def ring_reduce_scatter(chunks, op):
    return finished(with_zeros(ring(chunks, op), op), op)
