"""You compare the operations alone. Two ranks that call all_reduce on different numbers of
elements differ, too."""
# exercise: first_divergence
# diagnosis: wrong_type


def first_divergence(records):
    names = [[name for name, size in calls] for calls in records]
    for position, calls in enumerate(zip_longest(*names)):
        norm = norm_of(calls)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
