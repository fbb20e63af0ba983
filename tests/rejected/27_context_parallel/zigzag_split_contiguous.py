# exercise: zigzag_split
# diagnosis: wrong_value
# hint: in rank order
def zigzag_split(tokens, n):
    size = tokens // n
    return [list(range(r * size, (r + 1) * size)) for r in range(n)]
