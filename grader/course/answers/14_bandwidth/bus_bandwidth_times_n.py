"""nbytes is the whole tensor already, all n parts of it: do not multiply by n, or the bandwidth is
n times too large."""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# or: OPS = ("all_reduce", *PARTS)
# or: OPS = ("all_reduce", *PARTS, *WHOLE)
# or: OPS = ("all_gather",)
# or: OPS = ("reduce_scatter",)
# or: OPS = ("all_gather", "reduce_scatter")

OPS = PARTS


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = factor * n
    return nbytes / seconds * factor
