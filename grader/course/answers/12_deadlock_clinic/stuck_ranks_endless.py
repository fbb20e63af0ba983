# exercise: stuck_ranks
# diagnosis: timeout
# hint: remember where you have been
def stuck_ranks(waits_for):
    stuck = []
    for rank in waits_for:
        at = rank
        while waits_for.get(at) is not None:
            at = waits_for[at]
            if at == rank:
                stuck.append(rank)
                break
    return sorted(stuck)
