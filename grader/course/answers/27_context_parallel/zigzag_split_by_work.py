# exercise: zigzag_split
# diagnosis: wrong_value
# hint: one for each rank
# Cuts the sequence where the work is even, and so not the tokens.
def zigzag_split(tokens, n):
    total, done = tokens * (tokens + 1) // 2, 0
    plan = [[] for _ in range(n)]
    for token in range(tokens):
        plan[done * n // total].append(token)
        done += token + 1
    return plan
