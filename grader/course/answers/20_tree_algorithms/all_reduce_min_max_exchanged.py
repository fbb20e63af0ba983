"""MIN and MAX are swapped."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def combine(op, mine, came):
    if op == dist.ReduceOp.MIN:
        torch.maximum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came
