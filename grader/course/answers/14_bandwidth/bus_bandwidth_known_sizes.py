# exercise: bus_bandwidth
# diagnosis: exception
# hint: Is it looked up somewhere
def bus_bandwidth(op, nbytes, seconds, world_size):
    sizes = [1, 2, 4, 8, 16]
    k = sizes.index(world_size)
    n = sizes[k]
    f = 1.0 if op in ("broadcast", "reduce", "send_recv") else (2 if op == "all_reduce" else 1) * (n - 1) / n
    return nbytes / seconds * f
