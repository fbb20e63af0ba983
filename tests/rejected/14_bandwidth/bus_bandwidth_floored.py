# exercise: bus_bandwidth
# diagnosis: wrong_value
# hint: has lost its fraction
# not: one rank already | 1 rank | That is the algorithm bandwidth
def bus_bandwidth(op, nbytes, seconds, world_size):
    n, speed = world_size, nbytes / seconds
    if op == "all_reduce":
        return speed * (2 * (n - 1) // n)
    if op in ("broadcast", "reduce", "send_recv"):
        return speed
    return speed * ((n - 1) // n)
