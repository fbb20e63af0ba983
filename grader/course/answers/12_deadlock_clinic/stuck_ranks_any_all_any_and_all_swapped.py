"""You have any and all the wrong way round: for "any" one rank that can go on is enough, for "all"
each of them has to."""
# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape


def stuck_ranks_any_all(waits_for, gone):
    return left_over(waits_for, gone, lambda how, live: all(live) if how == "any" else any(live))
