"""Room for k elements is not enough for k rows: a row may have many elements. Use
rows.new_empty((k, *rows.shape[1:]))."""
# exercise: all_to_all_uneven
# diagnosis: size_mismatch


def all_to_all_uneven(rows, counts):
    mine = rows.split(counts)
    parts = [rows.new_empty(k) for k in told(counts)]
    parts[dist.get_rank()] = mine[dist.get_rank()]
    for dst, src in others():
        swap(mine[dst], dst, parts[src], src)
    return torch.cat(parts)
