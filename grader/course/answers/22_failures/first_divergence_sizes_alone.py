"""You compare the numbers of elements alone. Calls of different operations differ, too."""
# exercise: first_divergence
# diagnosis: wrong_type


def first_divergence(records):
    sizes = [[size for name, size in calls] for calls in records]
    for position, calls in enumerate(zip_longest(*sizes)):
        norm = norm_of(calls)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
