"""AVG takes the mean of two tensors at a time. Where the number of ranks is not a power of two,
that does not count all x alike: add up first, and divide by n once, at the end."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def combine(op, mine, came):
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came
        if op == dist.ReduceOp.AVG:
            mine /= 2


def divide(op, mine, n):
    pass
