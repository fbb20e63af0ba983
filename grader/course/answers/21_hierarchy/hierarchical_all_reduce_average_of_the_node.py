"""The sum is divided by the number of ranks on a node. n ranks are added up in all, so divide by
n; or let both levels take the average."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value


def divide(op, mine, k):
    if op == dist.ReduceOp.AVG:
        mine /= k
