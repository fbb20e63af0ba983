"""One of the n parts stays where it is: it is not sent. The factor is (n − 1)/n and not 1."""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# or: OPS = ("scatter", "gather")
# or: OPS = ("scatter",)
# or: OPS = ("gather",)
# or: OPS = ("all_to_all",)
# or: OPS = ("all_gather", "reduce_scatter")
# or: OPS = ("all_to_all", "scatter", "gather")

OPS = PARTS


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = 1
    return nbytes / seconds * factor
