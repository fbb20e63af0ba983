"""The rows are in the order of your steps. They belong in rank order: put what arrives from src into
place src of a list, and join the list at the end."""
# exercise: all_to_all_uneven
# diagnosis: wrong_value


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = arrived(rows, counts, rows.split(counts), told(counts))
    return torch.cat([parts[(rank - step) % n] for step in range(n)])
