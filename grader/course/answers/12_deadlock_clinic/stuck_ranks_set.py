# exercise: stuck_ranks
# diagnosis: wrong_type
# hint: Return a list of ranks
def stuck_ranks(waits_for):
    left = dict(waits_for)
    while True:
        free = [rank for rank, goal in left.items() if goal not in left]
        if not free:
            return set(left)
        for rank in free:
            del left[rank]
