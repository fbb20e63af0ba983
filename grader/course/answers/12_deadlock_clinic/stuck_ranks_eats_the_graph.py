# exercise: stuck_ranks
# diagnosis: input_changed
# hint: dict(waits_for)
def stuck_ranks(waits_for):
    while True:
        free = [rank for rank, goal in waits_for.items() if goal not in waits_for]
        if not free:
            return sorted(waits_for)
        for rank in free:
            del waits_for[rank]
