"""You find only pairs that wait for each other. A cycle may have any number of ranks."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
# not: Only the ranks on cycles
# Knows only of two that wait for each other.
def stuck_ranks(waits_for):
    return sorted(
        rank for rank, goal in waits_for.items() if goal is not None and waits_for.get(goal) == rank
    )
