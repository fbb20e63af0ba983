"""These are all that wait. Many of them wait for a rank that runs, directly or through others, and
will go on."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
def stuck_ranks(waits_for):
    return sorted(rank for rank, goal in waits_for.items() if goal is not None)
