# exercise: double_trees
# diagnosis: none


def heap(order):
    parents = [None] * len(order)
    for place, rank in enumerate(order):
        if place:
            parents[rank] = order[(place - 1) // 2]
    return parents


def double_trees(n):
    """Two heaps: odd ranks first, and even ranks first."""
    odd, even = list(range(1, n, 2)), list(range(0, n, 2))
    return heap(odd + even), heap(even + odd)
