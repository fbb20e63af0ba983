"""SUM is right, and the mean is rounded down, by // or by a conversion to integers. AVG is only for
floating-point numbers, and / is their division."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value


def finished(total, op):
    return total // dist.get_world_size() if op == R.AVG else total


def reduce_scatter(chunks, op):
    return finished(direct(chunks, op), op)


def ring_reduce_scatter(chunks, op):
    return finished(ring(chunks, op), op)
