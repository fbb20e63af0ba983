"""These are gigabytes a second. Bytes are asked for: a table may divide by 10⁹ later."""
# exercise: algorithm_bandwidth, bus_bandwidth
# diagnosis: wrong_value


def algorithm_bandwidth(nbytes, seconds):
    return nbytes / seconds / 1e9


def bus_bandwidth(op, nbytes, seconds, world_size):
    return nbytes / seconds / 1e9 * factors(world_size)[op]
