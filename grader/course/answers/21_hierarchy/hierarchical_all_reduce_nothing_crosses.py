"""Every rank has the reduction of its own node: nothing has crossed to the others. The all_reduce
in the second group is missing."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value
# or: BY = "k"

BY = "n"


def reduce_across(mine, op, node, across):
    pass


def divide(op, mine, k):
    if op == dist.ReduceOp.AVG:
        mine /= dist.get_world_size() if BY == "n" else k
