# exercise: bus_bandwidth
# diagnosis: exception
# hint: All nine names
def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factors = {"AllReduce": 2 * (n - 1) / n, "Broadcast": 1}
    return nbytes / seconds * factors[op]
