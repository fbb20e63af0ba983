# exercise: stuck_ranks
# diagnosis: exception
# hint: one that is not a key of waits_for
# not: None is no rank
def stuck_ranks(waits_for):
    stuck = []
    for rank in waits_for:
        seen, at = set(), rank
        while at is not None and at not in seen:
            seen.add(at)
            at = waits_for[at]
        if at is not None:
            stuck.append(rank)
    return sorted(stuck)
