# exercise: stuck_ranks
# diagnosis: exception
# hint: None is not a rank to look up
def stuck_ranks(waits_for):
    stuck = []
    for rank in waits_for:
        seen, at = set(), rank
        while at not in seen:
            seen.add(at)
            at = waits_for[at]
        stuck.append(rank)
    return sorted(stuck)
