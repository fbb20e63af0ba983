"""These are binary gigabytes (2³⁰ bytes) a second. Bytes are asked for."""
# exercise: algorithm_bandwidth, bus_bandwidth
# diagnosis: wrong_value


def algorithm_bandwidth(nbytes, seconds):
    return nbytes / seconds / 2**30


def bus_bandwidth(op, nbytes, seconds, world_size):
    return nbytes / seconds / 2**30 * factors(world_size)[op]
