# exercise: zigzag_split
# diagnosis: exception
# hint: failed in the quoted line
def zigzag_split(tokens, n):
    size = tokens // (2 * n)
    chunk = [list(range(i * size, (i + 1) * size)) for i in range(2 * n)]
    return [chunk[r] + chunk[2 * n - r] for r in range(n)]
