"""Whatever op is, you sum, and do not divide: none of your comparisons holds. op is no text: compare
it with dist.ReduceOp.MIN and the others."""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value


def combine(op, mine, came):
    mine += came


def finish(op, total, n):
    pass
