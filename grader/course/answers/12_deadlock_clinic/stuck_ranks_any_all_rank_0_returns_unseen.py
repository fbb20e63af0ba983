"""0 is a rank, and false in Python: a condition such as `if rank` takes rank 0 for `None`. Ask
`is not None`."""
# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape


def stuck_ranks_any_all(waits_for, gone):
    return left_over(waits_for, {rank for rank in gone if rank})
