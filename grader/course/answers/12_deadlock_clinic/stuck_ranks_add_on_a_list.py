# exercise: stuck_ranks
# diagnosis: exception
# hint: -
# not: no key | waits_for.get
def stuck_ranks(waits_for):
    stuck = []
    for rank in waits_for:
        seen, at = [], rank
        while at in waits_for and at not in seen:
            seen.add(at)
            at = waits_for[at]
        if at in seen:
            stuck.append(rank)
    return sorted(stuck)
