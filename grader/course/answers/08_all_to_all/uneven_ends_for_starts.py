"""The rows for rank dst are looked for where they end: cumsum counts them with their own. They
begin after those for the ranks before, at sum(counts[:dst])."""
# exercise: all_to_all_uneven
# diagnosis: wrong_shape


def all_to_all_uneven(rows, counts):
    ends = torch.tensor(counts).cumsum(0).tolist()
    mine = [rows[end : end + count] for end, count in zip(ends, counts)]
    return torch.cat(arrived(rows, counts, mine, told(counts)))
