"""These are the ranks that agree with the norm. Return the others."""
# exercise: first_divergence
# diagnosis: wrong_shape


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records)):
        norm = norm_of(calls)
        agree = [rank for rank, call in enumerate(calls) if call == norm]
        if len(agree) < len(calls):
            return position, agree
    return None
