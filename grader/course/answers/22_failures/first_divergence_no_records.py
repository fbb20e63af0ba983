"""max of an empty sequence: there may be no records at all, and then all agree. max(...,
default=0) helps."""
# exercise: first_divergence
# diagnosis: exception


def first_divergence(records):
    for position in range(max(len(one) for one in records)):
        calls = [one[position] if position < len(one) else None for one in records]
        norm = norm_of(calls)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
