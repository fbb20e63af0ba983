# exercise: first_divergence
# diagnosis: wrong_shape
# hint: only the first of the ranks that differ
from itertools import zip_longest


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records)):
        made = [call for call in calls if call is not None]
        norm = max(made, key=made.count)
        for rank, call in enumerate(calls):
            if call != norm:
                return position, [rank]
    return None
