"""counts says how many rows you send to each rank, not how many each rank sends to you. Only the
sender knows that number, so exchange the counts first."""
# exercise: all_to_all_uneven
# diagnosis: size_mismatch


def all_to_all_uneven(rows, counts):
    return torch.cat(arrived(rows, counts, rows.split(counts), counts))
