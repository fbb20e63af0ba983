# exercise: bus_bandwidth
# diagnosis: wrong_value
# hint: bits a second
def bus_bandwidth(op, nbytes, seconds, world_size):
    n, speed = world_size, nbytes / seconds
    if op == "all_reduce":
        return 8 * speed * 2 * (n - 1) / n
    if op in ("broadcast", "reduce", "send_recv"):
        return 8 * speed
    return 8 * speed * (n - 1) / n
