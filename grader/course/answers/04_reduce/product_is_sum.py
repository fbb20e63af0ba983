"""For PRODUCT, dst holds the sum: op is not compared with dist.ReduceOp.PRODUCT, or the values are
not multiplied there.
"""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value


def combine(op, mine, came):
    if op == R.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == R.MAX:
        torch.maximum(mine, came, out=mine)
    else:
        mine += came
