# exercise: bus_bandwidth
# diagnosis: none
def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factors = {
        "all_reduce": 2 * (n - 1) / n,
        "reduce_scatter": (n - 1) / n,
        "all_gather": (n - 1) / n,
        "all_to_all": (n - 1) / n,
        "scatter": (n - 1) / n,
        "gather": (n - 1) / n,
        "broadcast": 1.0,
        "reduce": 1.0,
        "send_recv": 1.0,
    }
    return nbytes / seconds * factors[op]
