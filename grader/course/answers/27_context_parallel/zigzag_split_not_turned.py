"""Each rank has a chunk of either half, but the later rank has the later chunk of both. Turn the
second half round: with chunk r goes chunk 2n − 1 − r."""
# exercise: zigzag_split
# diagnosis: wrong_value


def zigzag_split(tokens, n):
    size = tokens // (2 * n)
    chunk = [list(range(i * size, (i + 1) * size)) for i in range(2 * n)]
    return [chunk[r] + chunk[n + r] for r in range(n)]
