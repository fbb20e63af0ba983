"""Your own rows come last, but they belong in rank order like all the others."""
# exercise: all_to_all_uneven
# diagnosis: wrong_value


def all_to_all_uneven(rows, counts):
    parts = arrived(rows, counts, rows.split(counts), told(counts))
    own = parts.pop(dist.get_rank())
    return torch.cat([*parts, own])
