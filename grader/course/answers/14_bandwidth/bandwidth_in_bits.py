"""These are bits a second. Bytes are asked for: do not multiply by 8."""
# exercise: algorithm_bandwidth, bus_bandwidth
# diagnosis: wrong_value


def algorithm_bandwidth(nbytes, seconds):
    return nbytes / seconds * 8


def bus_bandwidth(op, nbytes, seconds, world_size):
    return nbytes / seconds * 8 * factors(world_size)[op]
