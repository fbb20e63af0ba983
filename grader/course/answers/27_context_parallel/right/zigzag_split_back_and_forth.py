# exercise: zigzag_split
# diagnosis: none
# Deals the tokens out one by one, to and fro.
def zigzag_split(tokens, n):
    there = [*range(n), *reversed(range(n))]
    return [[i for i in range(tokens) if there[i % (2 * n)] == r] for r in range(n)]
