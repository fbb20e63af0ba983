"""Your own chunk comes last, and the others before it. Entry j belongs to rank j."""
# exercise: all_to_all
# diagnosis: wrong_value


def all_to_all(chunks):
    received = exchanged(chunks)
    own = received.pop(dist.get_rank())
    return [*received, own]
