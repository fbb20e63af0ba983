"""Whatever op says, you sum: compare op with dist.ReduceOp.MIN and the others."""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value


def combine(op, mine, came):
    mine += came
