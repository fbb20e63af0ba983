"""The tokens are in rank order, so the last rank's see almost all keys and the first rank's hardly
any. Give each rank two pieces, one from either end of the sequence."""
# exercise: zigzag_split
# diagnosis: wrong_value


def zigzag_split(tokens, n):
    size = tokens // n
    return [list(range(r * size, (r + 1) * size)) for r in range(n)]
