"""That counts one rank's part. nbytes is the whole tensor already, all n parts of it: do not
divide by n once more, or the bandwidth is n times too small."""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# or: OPS = ("all_gather",)
# or: OPS = ("reduce_scatter",)
# or: OPS = ("all_gather", "gather")
# or: OPS = ("reduce_scatter", "scatter")
# or: OPS = ("scatter", "gather")

OPS = PARTS


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = factor / n
    return nbytes / seconds * factor
