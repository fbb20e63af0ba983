"""The rows for rank j are looked for at j times counts[j], which is where they begin only if all
counts are alike. They begin after those for the ranks before, at sum(counts[:j])."""
# exercise: all_to_all_uneven
# diagnosis: size_mismatch


def all_to_all_uneven(rows, counts):
    mine = [rows[dst * count : (dst + 1) * count] for dst, count in enumerate(counts)]
    return torch.cat(arrived(rows, counts, mine, told(counts)))
