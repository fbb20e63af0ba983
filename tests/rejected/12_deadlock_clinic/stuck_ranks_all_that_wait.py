# exercise: stuck_ranks
# diagnosis: wrong_shape
# hint: These are all that wait
def stuck_ranks(waits_for):
    return sorted(rank for rank, goal in waits_for.items() if goal is not None)
