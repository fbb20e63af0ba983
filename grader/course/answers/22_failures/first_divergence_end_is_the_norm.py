"""Where most lists have ended, you take the end for the norm. An end is not a call: the ranks that
have ended are those that differ."""
# exercise: first_divergence
# diagnosis: wrong_shape


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records)):
        norm = max(calls, key=calls.count)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
