# exercise: zigzag_split
# diagnosis: wrong_value
# hint: Turn the second half round
def zigzag_split(tokens, n):
    size = tokens // (2 * n)
    chunk = [list(range(i * size, (i + 1) * size)) for i in range(2 * n)]
    return [chunk[r] + chunk[n + r] for r in range(n)]
