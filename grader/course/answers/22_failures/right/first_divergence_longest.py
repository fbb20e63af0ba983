# exercise: first_divergence
# diagnosis: none
from collections import Counter


def first_divergence(records):
    for position in range(max(map(len, records))):
        calls = [one[position] if position < len(one) else None for one in records]
        made = Counter(call for call in calls if call is not None)
        norm = max(made, key=lambda call: (made[call], -calls.index(call)))
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
