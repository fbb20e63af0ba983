# exercise: bus_bandwidth
# diagnosis: none
# Counts phases: how often a tensor's n − 1 parts cross a link.
PHASES = {"all_reduce": 2, "broadcast": 0, "reduce": 0, "send_recv": 0}


def bus_bandwidth(op, nbytes, seconds, world_size):
    phases = PHASES.get(op, 1)
    if phases == 0:
        carried = nbytes
    else:
        carried = phases * (nbytes - nbytes / world_size)
    return carried / seconds
