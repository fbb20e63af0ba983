# exercise: bus_bandwidth
# diagnosis: none
def algorithm_bandwidth(nbytes, seconds):
    return nbytes / seconds


def bus_bandwidth(op, nbytes, seconds, world_size):
    speed = algorithm_bandwidth(nbytes, seconds)
    match op:
        case "broadcast" | "reduce" | "send_recv":
            return speed
        case "all_reduce":
            return speed * (world_size - 1) * 2 / world_size
        case _:
            return speed * (world_size - 1) / world_size
