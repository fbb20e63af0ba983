"""That is the algorithm bandwidth. How many bytes a link carries depends on the operation and the
number of ranks: there is a factor to multiply with."""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# or: OPS = ("all_reduce",)

OPS = ("all_reduce", *PARTS)


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = 1
    return nbytes / seconds * factor
