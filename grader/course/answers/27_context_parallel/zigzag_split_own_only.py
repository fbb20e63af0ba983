# exercise: zigzag_split
# diagnosis: wrong_value
# hint: one for each rank
def zigzag_split(tokens, n):
    size = tokens // (2 * n)
    return list(range(size)) + list(range(tokens - size, tokens))
