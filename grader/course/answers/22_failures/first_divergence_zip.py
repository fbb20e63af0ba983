"""You stop at the end of the shortest list, as zip does. A rank whose list has ended differs from
those that go on: look as far as the longest list goes."""
# exercise: first_divergence
# diagnosis: wrong_type


def first_divergence(records):
    for position, calls in enumerate(zip(*records)):
        norm = norm_of(calls)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
