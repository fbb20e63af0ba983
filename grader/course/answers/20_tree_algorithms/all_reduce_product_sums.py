"""PRODUCT is summed here. Does a comparison with dist.ReduceOp.PRODUCT come before the sum, and
multiply?"""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def combine(op, mine, came):
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, came, out=mine)
    else:
        mine += came
