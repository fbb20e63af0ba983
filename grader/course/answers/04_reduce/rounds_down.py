"""The mean is rounded down, by // or by a conversion to integers. AVG is only for floating-point
numbers, and / is their division.
"""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value


def finish(op, total, n):
    if op == R.AVG:
        total //= n
