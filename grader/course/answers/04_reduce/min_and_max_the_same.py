"""MIN and MAX give the same, so one of them is wrong: MIN is torch.minimum, MAX is torch.maximum.
"""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value
# or: BOTH = "maximum"

BOTH = "minimum"


def combine(op, mine, came):
    if op in (R.MIN, R.MAX):
        mine.copy_(getattr(torch, BOTH)(mine, came))
    elif op == R.PRODUCT:
        mine *= came
    else:
        mine += came
