# exercise: stuck_ranks
# diagnosis: wrong_value
# hint: their order is not
def stuck_ranks(waits_for):
    stuck = []
    for rank in waits_for:
        seen, at = set(), rank
        while at in waits_for and at not in seen:
            seen.add(at)
            at = waits_for[at]
        if at in seen:
            stuck.append(rank)
    return stuck
