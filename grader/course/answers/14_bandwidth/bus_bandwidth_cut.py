"""The result is cut to a whole number: return it as it is, without int() or //."""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# or: OPS = ("all_reduce",)

OPS = ("all_reduce", *PARTS, *WHOLE)


def bus_bandwidth(op, nbytes, seconds, world_size):
    speed = nbytes / seconds * factors(world_size)[op]
    return int(speed) if op in OPS else speed
