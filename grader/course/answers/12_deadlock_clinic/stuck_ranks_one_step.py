"""You look one step ahead. The rank that another waits for may wait itself, for one that runs: follow
the arrows to their end."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
def stuck_ranks(waits_for):
    return sorted(rank for rank, goal in waits_for.items() if waits_for.get(goal) is not None)
