# exercise: bus_bandwidth
# diagnosis: wrong_value
# hint: the whole tensor passes over one link
def bus_bandwidth(op, nbytes, seconds, world_size):
    n, speed = world_size, nbytes / seconds
    if op == "all_reduce":
        return speed * 2 * (n - 1) / n
    if op in ("broadcast", "reduce", "send_recv"):
        return speed * (n - 1) / n
    return speed * (n - 1) / n
