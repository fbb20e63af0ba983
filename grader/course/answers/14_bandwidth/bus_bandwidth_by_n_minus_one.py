# exercise: bus_bandwidth
# diagnosis: exception
# hint: divide by n alone
# not: nine names
def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    part = seconds * n / (n - 1)
    if op == "all_reduce":
        return 2 * nbytes / part
    if op in ("broadcast", "reduce", "send_recv"):
        return nbytes / seconds
    return nbytes / part
