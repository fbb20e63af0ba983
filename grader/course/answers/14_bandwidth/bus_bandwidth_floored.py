"""The factor of an all-reduce has lost its fraction, as happens with //: 2(n − 1)/n is 1.5 for 4
ranks. Divide with /."""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# not: one rank already | 1 rank | That is the algorithm bandwidth
# or: OPS = ("all_reduce", *PARTS)

OPS = ("all_reduce",)


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = int(factor)
    return nbytes / seconds * factor
