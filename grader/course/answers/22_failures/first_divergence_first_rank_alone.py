"""You return only the first of the ranks that differ. There may be several at the same position:
return all of them."""
# exercise: first_divergence
# diagnosis: wrong_shape


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records)):
        norm = norm_of(calls)
        for rank, call in enumerate(calls):
            if call != norm:
                return position, [rank]
    return None
