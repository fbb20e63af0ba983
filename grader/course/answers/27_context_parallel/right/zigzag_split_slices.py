# exercise: zigzag_split
# diagnosis: none
def zigzag_split(tokens, n):
    size = tokens // n // 2
    every = list(range(tokens))
    return [
        every[r * size : (r + 1) * size] + every[tokens - (r + 1) * size : tokens - r * size]
        for r in range(n)
    ]
