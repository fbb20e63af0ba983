# exercise: first_divergence
# diagnosis: exception
# hint: no records at all
def first_divergence(records):
    for position in range(max(len(one) for one in records)):
        calls = [one[position] if position < len(one) else None for one in records]
        made = [call for call in calls if call is not None]
        norm = max(made, key=made.count)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
