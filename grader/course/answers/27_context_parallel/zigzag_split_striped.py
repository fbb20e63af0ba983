"""Every n-th token for each rank is nearly even, but not quite: for every token of rank r there is
one of rank r + 1 that sees one key more, and that adds up. Cut the sequence into 2n chunks, and
give each rank one from either end."""
# exercise: zigzag_split
# diagnosis: wrong_value


def zigzag_split(tokens, n):
    return [list(range(r, tokens, n)) for r in range(n)]
