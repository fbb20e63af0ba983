"""The counts do not have the same dtype at both ends. torch.tensor([3]) is int64 and
torch.empty(1) is float32: give both ends the same dtype."""
# exercise: all_to_all_uneven
# diagnosis: dtype_mismatch
# or: DTYPE = torch.int32

DTYPE = torch.float32


def all_to_all_uneven(rows, counts):
    mine = rows.split(counts)
    arriving = list(counts)
    for dst, src in others():
        count = torch.zeros(1, dtype=DTYPE)
        swap(torch.tensor([counts[dst]]), dst, count, src)
        arriving[src] = int(count)
    return torch.cat(arrived(rows, counts, mine, arriving))
