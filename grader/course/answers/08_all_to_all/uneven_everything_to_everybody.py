"""Every rank sends all of its rows to every other one. Send rank dst only the counts[dst] rows
that are for it."""
# exercise: all_to_all_uneven
# diagnosis: too_many_bytes


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    table = [[int(count) for count in one] for one in exchanged([torch.tensor(counts)] * n)]
    theirs = arrived(rows, counts, [rows] * n, [sum(one) for one in table])
    return torch.cat([all_.split(one)[rank] for all_, one in zip(theirs, table)])
