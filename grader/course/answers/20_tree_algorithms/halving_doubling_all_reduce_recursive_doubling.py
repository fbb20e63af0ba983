"""Whole tensors are exchanged. After the first exchange a rank needs the sum of one half only, so
send a half, then a quarter, then an eighth."""
# exercise: halving_doubling_all_reduce
# diagnosis: too_few_rounds
# earns: 0.5


def halving_doubling_all_reduce(x, op):
    """The same as recursive doubling."""
    recursive_doubling_all_reduce(x, op)
