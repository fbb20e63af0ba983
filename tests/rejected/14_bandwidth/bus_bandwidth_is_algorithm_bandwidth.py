# exercise: bus_bandwidth
# diagnosis: wrong_value
# hint: That is the algorithm bandwidth
def bus_bandwidth(op, nbytes, seconds, world_size):
    return nbytes / seconds
