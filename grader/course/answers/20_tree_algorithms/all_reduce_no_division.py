"""AVG is the sum divided by the number of ranks, and this is the sum: nothing divides it, or what
is divided is thrown away (x = x / n makes a new tensor, x /= n does not)."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def divide(op, mine, n):
    pass
