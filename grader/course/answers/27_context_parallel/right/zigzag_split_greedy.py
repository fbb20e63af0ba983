# exercise: zigzag_split
# diagnosis: none
# The token with the most work goes to the rank with the least, as long as that has room.
def zigzag_split(tokens, n):
    plan = [[] for _ in range(n)]
    work = [0] * n
    for token in reversed(range(tokens)):
        free = [r for r in range(n) if len(plan[r]) < tokens // n]
        r = min(free, key=lambda r: (work[r], r))
        plan[r].append(token)
        work[r] += token + 1
    return plan
