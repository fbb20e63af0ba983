"""The factor approaches 2 only on very many ranks. An all-reduce is a reduce-scatter and an
all-gather: two phases of (n − 1)/n each."""
# exercise: bus_bandwidth
# diagnosis: wrong_value

OPS = ("all_reduce",)


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = 2
    return nbytes / seconds * factor
