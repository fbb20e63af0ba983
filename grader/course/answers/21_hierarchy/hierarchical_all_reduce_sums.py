"""You sum where op says something else. Both the reduce_scatter and the all_reduce need op=…:
without it they sum."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value
# or: IN_NODE = "op"
# or: ACROSS = "op"

IN_NODE = "SUM"
ACROSS = "SUM"


def reduce_in_node(mine, padded, op, node):
    how = summed(op) if IN_NODE == "op" else dist.ReduceOp.SUM
    dist.reduce_scatter_tensor(mine, padded, how, node)


def reduce_across(mine, op, node, across):
    how = summed(op) if ACROSS == "op" else dist.ReduceOp.SUM
    dist.all_reduce(mine, how, across)
