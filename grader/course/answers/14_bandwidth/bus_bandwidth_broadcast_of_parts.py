"""Here the whole tensor passes over one link, the sender's or the root's: the factor is 1 and not
(n − 1)/n."""
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
        factor = (n - 1) / n
    return nbytes / seconds * factor
