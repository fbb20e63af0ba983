"""0 is a rank, and false in Python: a condition such as `if rank` or `while rank` takes rank 0 for
`None`. Ask `is not None`."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
def stuck_ranks(waits_for):
    left = {rank: goal for rank, goal in waits_for.items() if goal}
    while free := [rank for rank, goal in left.items() if goal not in left]:
        for rank in free:
            del left[rank]
    return sorted(left)
