"""counts says how many rows you send to each rank, not how many each rank sends to you. Only the
sender knows that number, so exchange the counts first."""
# exercise: all_to_all_uneven
# diagnosis: size_mismatch
# or: TAKEN = "the first for all"

TAKEN = "each"


def all_to_all_uneven(rows, counts):
    arriving = counts if TAKEN == "each" else [counts[0]] * len(counts)
    return torch.cat(arrived(rows, counts, rows.split(counts), arriving))
