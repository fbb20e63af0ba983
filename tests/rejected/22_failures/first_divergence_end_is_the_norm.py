# exercise: first_divergence
# diagnosis: wrong_shape
# hint: An end is not a call
from itertools import zip_longest


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records)):
        norm = max(calls, key=calls.count)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
