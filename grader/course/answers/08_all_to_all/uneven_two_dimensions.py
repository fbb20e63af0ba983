"""rows may have one dimension only, and then there is no rows.shape[1]. rows.shape[1:] is the shape
of a row, whatever it is: rows.new_empty((k, *rows.shape[1:]))."""
# exercise: all_to_all_uneven
# diagnosis: exception
# or: SIZES = "first of all"

SIZES = "with each piece"


def all_to_all_uneven(rows, counts):
    mine = rows.split(counts)
    parts = [rows[:0]] * len(counts)
    parts[dist.get_rank()] = mine[dist.get_rank()]
    sizes = told(counts) if SIZES == "first of all" else ()
    for dst, src in others():
        if sizes:
            k = sizes[src]
        else:
            came = torch.empty(1, dtype=torch.int64)
            swap(torch.tensor([counts[dst]]), dst, came, src)
            k = int(came)
        parts[src] = rows.new_empty((k, rows.shape[1]))
        swap(mine[dst], dst, parts[src], src)
    return torch.cat(parts)
