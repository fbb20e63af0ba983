# exercise: bus_bandwidth
# diagnosis: wrong_value
# hint: gigabytes a second
def bus_bandwidth(op, nbytes, seconds, world_size):
    n, speed = world_size, nbytes / seconds
    if op == "all_reduce":
        return speed / 1e9 * 2 * (n - 1) / n
    if op in ("broadcast", "reduce", "send_recv"):
        return speed / 1e9
    return speed / 1e9 * (n - 1) / n
