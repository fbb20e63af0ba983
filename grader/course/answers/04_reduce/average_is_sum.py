"""AVG is the sum divided by the number of ranks; the division is missing."""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value


def finish(op, total, n):
    pass
