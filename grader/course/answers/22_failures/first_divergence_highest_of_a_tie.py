"""Of two calls that are equally frequent, you take the one of the highest rank for the norm. It
should be that of the lowest."""
# exercise: first_divergence
# diagnosis: wrong_value


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records)):
        norm = norm_of(calls[::-1])
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
