"""The all_reduce is in the group of the node. Its ranks hold different shares, which are added to
each other there; those that hold the same share are in the second group: group=across."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value


def reduce_across(mine, op, node, across):
    dist.all_reduce(mine, op=summed(op), group=node)
