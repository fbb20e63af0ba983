"""The rows are cut by the numbers of those that arrive. Cut what you send by counts, and make room
by the numbers that the others have told you."""
# exercise: all_to_all_uneven
# diagnosis: exception


def all_to_all_uneven(rows, counts):
    arriving = told(counts)
    return torch.cat(arrived(rows, counts, rows.split(arriving), counts))
