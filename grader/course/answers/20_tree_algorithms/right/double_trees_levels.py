# exercise: double_trees
# diagnosis: none


def double_trees(n):
    """Level by level; lists in a list."""
    trees = []
    for ranks in (range(n), range(n - 1, -1, -1)):
        waiting = list(ranks)
        root = waiting.pop(0)
        parents, level = {root: None}, [root]
        while waiting:
            below = []
            for rank in level:
                for _ in range(2):
                    if waiting:
                        child = waiting.pop(0)
                        parents[child] = rank
                        below.append(child)
            level = below
        trees.append([parents[rank] for rank in range(n)])
    return trees
