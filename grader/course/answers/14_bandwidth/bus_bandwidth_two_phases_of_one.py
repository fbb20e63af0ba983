"""It is twice too large where there is one phase. The 2 of an all-reduce counts its phases, a
reduce-scatter and an all-gather; each of these alone, like an all-to-all, has one."""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# or: OPS = ("all_gather", "reduce_scatter")
# or: OPS = ("reduce_scatter",)
# or: OPS = ("all_to_all",)
# or: OPS = ("all_gather", "reduce_scatter", "all_to_all")

OPS = ("reduce_scatter", "all_to_all")


def bus_bandwidth(op, nbytes, seconds, world_size):
    n = world_size
    factor = factors(n)[op]
    if op in OPS:
        factor = 2 * (n - 1) / n
    return nbytes / seconds * factor
