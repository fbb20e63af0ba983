"""The list of ranks may be empty: any([]) is False, so such a rank is stuck, and all([]) is True,
so such a rank goes on."""
# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape
# or: EMPTY = always_goes_on


def never_goes_on(how, live):
    return bool(live) and satisfied(how, live)


def always_goes_on(how, live):
    return not live or satisfied(how, live)


EMPTY = never_goes_on


def stuck_ranks_any_all(waits_for, gone):
    return left_over(waits_for, gone, EMPTY)
