"""The all_reduce is one of all ranks. It belongs to the group of those that hold the same share:
group=across."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value


def reduce_across(mine, op, node, across):
    dist.all_reduce(mine, op=summed(op))
