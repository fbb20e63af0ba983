"""The position is one too high: positions count from 0."""
# exercise: first_divergence
# diagnosis: wrong_value


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records), 1):
        norm = norm_of(calls)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
