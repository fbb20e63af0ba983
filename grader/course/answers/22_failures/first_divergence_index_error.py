# exercise: first_divergence
# diagnosis: exception
# hint: there is nothing to look up
def first_divergence(records):
    for position in range(max(map(len, records), default=0)):
        calls = [one[position] for one in records]
        norm = max(calls, key=calls.count)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
