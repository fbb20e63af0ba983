"""You sum, whatever op says: compare op with dist.ReduceOp.MIN and the others."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def combine(op, mine, came):
    mine += came
