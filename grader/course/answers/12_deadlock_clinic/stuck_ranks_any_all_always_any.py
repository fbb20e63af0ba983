"""You treat every wait as OR. For "all" a single rank that can never go on is enough to be stuck.
"""
# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape


def stuck_ranks_any_all(waits_for, gone):
    return left_over(waits_for, gone, lambda how, live: any(live))
