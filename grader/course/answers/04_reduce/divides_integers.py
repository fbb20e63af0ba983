"""Only AVG divides, and it is required only for floating-point tensors: integers cannot be
divided in place.
"""
# exercise: reduce, tree_reduce
# diagnosis: exception
# or: DIVIDED = (R.AVG, R.SUM)
# or: DIVIDED = (R.AVG, R.SUM, R.PRODUCT)

DIVIDED = (R.AVG, R.SUM, R.MIN, R.MAX, R.PRODUCT)


def finish(op, total, n):
    if op in DIVIDED:
        total /= n
