"""Your own chunk comes first, and the others follow. Entry j belongs to rank j."""
# exercise: all_to_all
# diagnosis: wrong_value


def all_to_all(chunks):
    received = exchanged(chunks)
    return [received.pop(dist.get_rank()), *received]
