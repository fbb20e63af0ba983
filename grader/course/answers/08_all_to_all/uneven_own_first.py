"""Your own rows come first, but they belong in rank order like all the others."""
# exercise: all_to_all_uneven
# diagnosis: wrong_value


def all_to_all_uneven(rows, counts):
    parts = arrived(rows, counts, rows.split(counts), told(counts))
    return torch.cat([parts.pop(dist.get_rank()), *parts])
