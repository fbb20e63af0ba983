"""The last elements are not reduced: ranks_per_node does not divide the length, and length //
ranks_per_node rounds down. Round up, and pad."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value


def hierarchical_all_reduce(x, op, ranks_per_node):
    even = x.view(-1)[: x.numel() // ranks_per_node * ranks_per_node]
    even.copy_(result_of(even, op, ranks_per_node))
