"""(n − 1) // n is 0 for every n: // drops the fraction. Divide with /."""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# not: one rank's part
# or: OPS = ("all_reduce", *PARTS)

OPS = PARTS


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = (n - 1) // n
    return nbytes / seconds * factor
