# exercise: stuck_ranks
# diagnosis: none
# The other way round: who can go on? Those that run, those that wait for them, and so on.
def stuck_ranks(waits_for):
    left = dict(waits_for)
    while True:
        free = [rank for rank, goal in left.items() if goal is None or goal not in left]
        if not free:
            return sorted(left)
        for rank in free:
            del left[rank]
