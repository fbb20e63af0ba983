# exercise: bus_bandwidth
# diagnosis: wrong_type
# hint: ends without a return
def bus_bandwidth(op, nbytes, seconds, world_size):
    n, speed = world_size, nbytes / seconds
    if op == "all_reduce":
        return speed * 2 * (n - 1) / n
    if op in ("all_gather", "reduce_scatter", "all_to_all", "scatter"):
        return speed * (n - 1) / n
    if op in ("broadcast", "reduce", "send_recv"):
        return speed
