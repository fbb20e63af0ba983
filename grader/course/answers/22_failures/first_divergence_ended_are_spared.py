"""You leave out the ranks whose lists have ended. They make no call where others make one, so they
always differ."""
# exercise: first_divergence
# diagnosis: wrong_type


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records)):
        norm = norm_of(calls)
        differ = [rank for rank, call in enumerate(calls) if call not in (norm, None)]
        if differ:
            return position, differ
    return None
