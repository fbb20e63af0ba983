"""The offset is not moved past your own rows: the rows for rank dst begin after those for all
ranks before it, your own included."""
# exercise: all_to_all_uneven
# diagnosis: wrong_value


def all_to_all_uneven(rows, counts):
    rank = dist.get_rank()
    mine, start = list(rows.split(counts)), 0
    for dst, count in enumerate(counts):
        if dst != rank:
            mine[dst] = rows[start : start + count]
            start += count
    return torch.cat(arrived(rows, counts, mine, told(counts)))
