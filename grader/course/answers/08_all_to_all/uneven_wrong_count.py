"""You have the counts of every rank, but take the wrong one of them: from rank src come as many
rows as it has for you, and that is entry rank in the counts of src."""
# exercise: all_to_all_uneven
# diagnosis: size_mismatch


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    table = exchanged([torch.tensor(counts)] * n)
    arriving = [int(table[src][src]) for src in range(n)]
    return torch.cat(arrived(rows, counts, rows.split(counts), arriving))
