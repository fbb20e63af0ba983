"""A rank that waits for itself is a cycle of one: it can never go on."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
def stuck_ranks(waits_for):
    stuck = []
    for rank, goal in waits_for.items():
        if goal == rank:
            continue
        seen, at = set(), rank
        while at in waits_for and at not in seen:
            seen.add(at)
            at = waits_for[at]
        if at in seen:
            stuck.append(rank)
    return sorted(stuck)
