# exercise: zigzag_split
# diagnosis: wrong_value
# hint: taken twice
def zigzag_split(tokens, n):
    size = tokens // (2 * n)
    chunk = [list(range(i * size, (i + 1) * size)) for i in range(2 * n)]
    return [chunk[r] + chunk[n - 1 - r] for r in range(n)]
