"""0 is a rank, and false in Python: a condition such as `if rank` or `while rank` takes rank 0 for
`None`. Ask `is not None`."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
def stuck_ranks(waits_for):
    def free(rank, seen):
        goal = waits_for.get(rank) or None
        if goal is None:
            return True
        return goal not in seen and free(goal, seen | {goal})

    return sorted(rank for rank in waits_for if not free(rank, {rank}))
