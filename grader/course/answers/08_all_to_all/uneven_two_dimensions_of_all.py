"""rows may have one dimension only, and then there is no rows.shape[1]. rows.shape[1:] is the shape
of a row, whatever it is: rows.new_empty((k, *rows.shape[1:]))."""
# exercise: all_to_all_uneven
# diagnosis: exception


def all_to_all_uneven(rows, counts):
    mine = rows.split(counts)
    parts = [rows.new_empty((k, rows.shape[1])) for k in told(counts)]
    parts[dist.get_rank()] = mine[dist.get_rank()]
    for dst, src in others():
        swap(mine[dst], dst, parts[src], src)
    return torch.cat(parts)
