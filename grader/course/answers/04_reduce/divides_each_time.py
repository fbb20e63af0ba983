"""The division happens once per message, so early terms are divided again and again: add
everything up first, divide once.
"""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value
# or: BY = "two"

BY = "n"


def combine(op, mine, came):
    if op == R.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == R.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == R.PRODUCT:
        mine *= came
    elif op == R.AVG:
        mine += came
        mine /= 2 if BY == "two" else dist.get_world_size()
    else:
        mine += came


def finish(op, total, n):
    pass
