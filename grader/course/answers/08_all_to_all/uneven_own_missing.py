"""The rows that a rank keeps for itself are missing from its result."""
# exercise: all_to_all_uneven
# diagnosis: wrong_shape


def all_to_all_uneven(rows, counts):
    parts = arrived(rows, counts, rows.split(counts), told(counts))
    del parts[dist.get_rank()]
    return torch.cat([rows[:0], *parts])
