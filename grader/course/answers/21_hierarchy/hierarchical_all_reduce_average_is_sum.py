"""AVG is the sum divided by the number of ranks; the division is missing."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value


def divide(op, mine, k):
    pass
