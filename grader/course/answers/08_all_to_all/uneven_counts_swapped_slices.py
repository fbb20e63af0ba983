"""The rows are cut by the numbers of those that arrive. Cut what you send by counts, and make room
by the numbers that the others have told you."""
# exercise: all_to_all_uneven
# diagnosis: size_mismatch


def all_to_all_uneven(rows, counts):
    arriving, start, mine = told(counts), 0, []
    for count in arriving:
        mine.append(rows[start : start + count])
        start += count
    return torch.cat(arrived(rows, counts, mine, arriving))
