"""Divide only if op is AVG, which comes with floating-point numbers only."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: exception


def divide(op, mine, n):
    mine /= n
