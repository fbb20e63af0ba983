"""The sum is divided by the power of two. All n ranks are in it, the folded ones too, so divide by
n."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def divide(op, mine, n):
    if op == dist.ReduceOp.AVG:
        mine /= 1 << (n.bit_length() - 1)
