"""A rank that waits for itself is a cycle of one: it can never go on, and whoever waits for it neither.
You leave it out before you begin."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
def stuck_ranks(waits_for):
    left = {rank for rank, goal in waits_for.items() if goal is not None and goal != rank}
    while True:
        free = {rank for rank in left if waits_for[rank] not in left}
        if not free:
            return sorted(left)
        left -= free
