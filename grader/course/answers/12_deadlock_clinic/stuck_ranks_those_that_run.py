"""These are the ranks that can go on; return those that cannot."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
def stuck_ranks(waits_for):
    free = []
    for rank in sorted(waits_for):
        seen, at = set(), rank
        while at in waits_for and at not in seen:
            seen.add(at)
            at = waits_for[at]
        if at not in seen:
            free.append(rank)
    return free
