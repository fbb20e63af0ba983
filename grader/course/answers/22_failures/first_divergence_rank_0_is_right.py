"""You take rank 0's call for the norm. Rank 0 may be the one that is wrong: the norm is the most
frequent call."""
# exercise: first_divergence
# diagnosis: wrong_shape
# or: ENDS_COUNT = False

ENDS_COUNT = True


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records)):
        norm = calls[0] if ENDS_COUNT else next(call for call in calls if call is not None)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
