# exercise: bus_bandwidth
# diagnosis: exception
# hint: All nine names
def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    parts = dict.fromkeys(("reduce_scatter", "all_gather", "all_to_all"), (n - 1) / n)
    whole = dict.fromkeys(("broadcast", "reduce", "send_recv"), 1)
    factors = {"all_reduce": 2 * (n - 1) / n, **parts, **whole}
    return nbytes / seconds * factors[op]
