# exercise: first_divergence
# diagnosis: wrong_value
# hint: It should be that of the lowest
def first_divergence(records):
    for position in range(max(map(len, records), default=0)):
        calls = [one[position] if position < len(one) else None for one in records]
        made = [call for call in reversed(calls) if call is not None]
        norm = max(made, key=made.count)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
