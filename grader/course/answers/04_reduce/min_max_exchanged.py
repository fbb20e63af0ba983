"""MIN and MAX are swapped."""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value


def combine(op, mine, came):
    if op == R.MAX:
        torch.minimum(mine, came, out=mine)
    elif op == R.MIN:
        torch.maximum(mine, came, out=mine)
    elif op == R.PRODUCT:
        mine *= came
    else:
        mine += came
