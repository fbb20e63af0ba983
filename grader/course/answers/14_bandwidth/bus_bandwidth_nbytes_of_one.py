"""It is n times too large where ranks hold parts. nbytes is the size of the whole tensor, and not of
the part of one rank: of it, (n − 1)/n is sent."""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# or: OPS = ("all_gather",)
# or: OPS = ("all_gather", "gather")
# or: OPS = ("all_gather", "reduce_scatter", "all_to_all")
# or: OPS = ("gather", "scatter")

OPS = ("all_gather", "reduce_scatter")


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = n - 1
    return nbytes / seconds * factor
