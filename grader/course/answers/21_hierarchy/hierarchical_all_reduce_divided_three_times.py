"""The average is divided once too often. Either both levels take the average, or both take the sum
and you divide by n once."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value
# or: AGAIN = "across"
# or: AGAIN = "both"

AGAIN = "node"


def divide(op, mine, k):
    n = dist.get_world_size()
    if op == dist.ReduceOp.AVG:
        mine /= n * {"node": k, "across": n // k, "both": n}[AGAIN]
