"""You treat every wait as AND. For "any" one rank that can go on is enough."""
# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape


def stuck_ranks_any_all(waits_for, gone):
    return left_over(waits_for, gone, lambda how, live: all(live))
