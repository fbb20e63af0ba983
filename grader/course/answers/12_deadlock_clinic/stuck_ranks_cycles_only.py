"""Your list has only the ranks on cycles. A rank that waits for one of them can never go on
either, though it is on no cycle itself."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
# not: Only two that wait
def stuck_ranks(waits_for):
    stuck = []
    for rank in waits_for:
        at, steps = waits_for[rank], 0
        while at != rank and at in waits_for and steps < len(waits_for):
            at, steps = waits_for[at], steps + 1
        if at == rank:
            stuck.append(rank)
    return sorted(stuck)
