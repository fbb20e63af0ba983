"""It is right where n is odd, and where n is even a rank has children in both trees. With n even,
exactly half of the ranks have children in each tree, so the second has to use just the other half.
"""
# exercise: double_trees
# diagnosis: wrong_value
# earns: 0.5


def double_trees(n):
    """Ranks moved on by n // 2 + 1: one too many where n is even."""
    one = [None] + [(r - 1) // 2 for r in range(1, n)]
    by = n // 2 + 1 if n > 2 else 1
    two = [None] * n
    for r, p in enumerate(one):
        two[(r + by) % n] = None if p is None else (p + by) % n
    return one, two
