# exercise: bus_bandwidth
# diagnosis: exception
# hint: -
# not: nine names
def bus_bandwidth(op, nbytes, seconds, world_size):
    return (nbytes + op) / seconds
