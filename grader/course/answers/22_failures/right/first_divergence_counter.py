# exercise: first_divergence
# diagnosis: none
from collections import Counter
from itertools import zip_longest


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records)):
        norm = Counter(call for call in calls if call is not None).most_common(1)[0][0]
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
