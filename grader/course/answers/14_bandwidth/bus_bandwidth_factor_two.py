"""The factor 2 belongs to the all-reduce alone, which has two phases. This operation has only one.
"""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# or: OPS = PARTS
# or: OPS = WHOLE
# or: OPS = ("all_to_all",)
# or: OPS = ("all_gather",)
# or: OPS = ("reduce_scatter",)
# or: OPS = ("all_gather", "reduce_scatter")
# or: OPS = ("broadcast",)
# or: OPS = ("reduce",)
# or: OPS = ("send_recv",)

OPS = PARTS + WHOLE


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = 2 * factor
    return nbytes / seconds * factor
