# exercise: stuck_ranks
# diagnosis: timeout
# hint: what should end it
# not: remember where you have been
# Removes what can go on, until nothing is left; on a cycle something always is.
def stuck_ranks(waits_for):
    left = dict(waits_for)
    stuck = []
    while left:
        free = [rank for rank, goal in left.items() if goal not in left]
        for rank in free:
            del left[rank]
        stuck = sorted(left)
    return stuck
