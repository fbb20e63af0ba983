"""The position is right, but you return all ranks. Return only those that differ from the norm."""
# exercise: first_divergence
# diagnosis: wrong_shape


def first_divergence(records):
    for position, calls in enumerate(zip_longest(*records)):
        if len(set(calls)) > 1:
            return position, list(range(len(records)))
    return None
