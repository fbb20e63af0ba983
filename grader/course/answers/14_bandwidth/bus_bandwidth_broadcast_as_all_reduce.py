"""2(n − 1)/n belongs to the all-reduce alone, which has two phases. This operation has only one.
"""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# or: OPS = ("broadcast", "reduce")
# or: OPS = ("broadcast",)
# or: OPS = ("reduce",)
# or: OPS = ("send_recv",)

OPS = WHOLE


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = 2 * (n - 1) / n
    return nbytes / seconds * factor
