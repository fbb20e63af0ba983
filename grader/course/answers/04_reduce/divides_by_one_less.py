"""The sum is divided by n − 1: dst's own x counts too."""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value


def finish(op, total, n):
    if op == R.AVG and n > 1:
        total /= n - 1
