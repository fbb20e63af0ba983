# exercise: bus_bandwidth
# diagnosis: exception
# hint: All nine names
def bus_bandwidth(op, nbytes, seconds, world_size):
    n, speed = world_size, nbytes / seconds
    if op == "all_reduce":
        return speed * 2 * (n - 1) / n
    if op in ("all_gather", "reduce_scatter", "all_to_all", "scatter", "gather"):
        return speed * (n - 1) / n
    if op in ("broadcast", "reduce"):
        return speed
    raise ValueError(f"no factor for {op}")
