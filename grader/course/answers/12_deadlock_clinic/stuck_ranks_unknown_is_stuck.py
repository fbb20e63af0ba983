"""A rank that is not a key is running, since nothing says that it waits. The ranks that wait for
it can go on."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
def stuck_ranks(waits_for):
    stuck = set(waits_for)
    changed = True
    while changed:
        free = {r for r in stuck if waits_for[r] is None}
        free |= {r for r in stuck if waits_for[r] in waits_for and waits_for[r] not in stuck}
        changed = bool(free)
        stuck -= free
    return sorted(stuck)
