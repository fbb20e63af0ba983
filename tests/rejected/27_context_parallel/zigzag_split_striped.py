# exercise: zigzag_split
# diagnosis: wrong_value
# hint: Every n-th token
def zigzag_split(tokens, n):
    return [list(range(r, tokens, n)) for r in range(n)]
