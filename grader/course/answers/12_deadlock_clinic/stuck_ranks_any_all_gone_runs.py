"""A rank that has returned posts nothing more, so it satisfies no wait. You treat the ranks in
gone as if they were running."""
# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape


def stuck_ranks_any_all(waits_for, gone):
    return left_over({r: w for r, w in waits_for.items() if r not in gone}, set())
