"""max of an empty sequence: there may be no records at all, and then all agree. max(...,
default=0) helps."""
# exercise: first_divergence
# diagnosis: exception
# or: NORM = "any"

NORM = "of the calls"


def first_divergence(records):
    for position in range(max(len(one) for one in records)):
        calls = [one[position] if position < len(one) else None for one in records]
        norm = norm_of(calls) if NORM == "of the calls" else max(calls, key=calls.count)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
