# exercise: first_divergence
# diagnosis: wrong_type
# hint: stop at the end of the shortest list
def first_divergence(records):
    for position, calls in enumerate(zip(*records)):
        norm = max(calls, key=calls.count)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
