"""A rank that is alone sends nothing: where the factor has n − 1, the bus bandwidth is 0 for one
rank. The formula gives that by itself, so treat one rank like any other number."""
# exercise: bus_bandwidth
# diagnosis: wrong_value
# or: ALONE = "one"

ALONE = "as if n - 1 were n"


def bus_bandwidth(op, nbytes, seconds, world_size):
    factor = factors(world_size)[op]
    if world_size == 1:
        factor = 2 if op == "all_reduce" and ALONE != "one" else 1
    return nbytes / seconds * factor
