# exercise: stuck_ranks
# diagnosis: exception
# hint: calls itself
def runs(waits_for, rank):
    goal = waits_for.get(rank)
    return goal is None or runs(waits_for, goal)


def stuck_ranks(waits_for):
    return sorted(rank for rank in waits_for if not runs(waits_for, rank))
