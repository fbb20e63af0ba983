"""AVG is the sum divided by the number of ranks; the division is missing."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def divide(op, mine, n):
    pass
