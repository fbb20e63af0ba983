"""The list is in the order of your steps: your own chunk, then the left neighbour's, and so on.
Entry j belongs to rank j: put what arrives from src into place src."""
# exercise: all_to_all
# diagnosis: wrong_value
# alike: messages


def all_to_all(chunks):
    received, rank, n = exchanged(chunks), dist.get_rank(), dist.get_world_size()
    return [received[(rank - step) % n] for step in range(n)]
