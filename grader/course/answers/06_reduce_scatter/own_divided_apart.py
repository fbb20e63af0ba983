"""For AVG the sum is not divided as a whole: your own chunk is divided and what comes is not, or
the other way round. Add everything up first, and divide the sum once."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value
# or: DIVIDED = "own"

DIVIDED = "the others"


def apart(chunks, op):
    """The chunks, of which those that stay or those that leave are divided."""
    own, n = dist.get_rank(), dist.get_world_size()
    return [c / n if op == R.AVG and (i == own) == (DIVIDED == "own") else c for i, c in enumerate(chunks)]


def reduce_scatter(chunks, op):
    return direct(apart(chunks, op), op)


def ring_reduce_scatter(chunks, op):
    return ring(apart(chunks, op), op)
