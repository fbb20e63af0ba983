# exercise: first_divergence
# diagnosis: wrong_value
# hint: positions count from 0
from itertools import zip_longest


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records), 1):
        made = [call for call in calls if call is not None]
        norm = max(made, key=made.count)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
