"""An all-reduce has two phases, and both move (n − 1)/n of the tensor over every link: a
reduce-scatter and an all-gather."""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# or: OPS = ("all_reduce", *WHOLE)

OPS = ("all_reduce",)


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = (n - 1) / n
    return nbytes / seconds * factor
