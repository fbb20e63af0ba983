# exercise: first_divergence
# diagnosis: wrong_shape
# hint: rank 0's call for the norm
from itertools import zip_longest


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records)):
        differ = [rank for rank, call in enumerate(calls) if call != calls[0]]
        if differ:
            return position, differ
    return None
