"""Every rank has its own share of the result in x, and no other. The last step is missing, which
is the all_gather in the node."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value


def hierarchical_all_reduce(x, op, ranks_per_node):
    node, across = node_groups(ranks_per_node)
    place = dist.get_rank() % ranks_per_node
    shares = x.view(-1).tensor_split(ranks_per_node)
    mine = torch.empty_like(shares[place])
    dist.reduce_scatter(mine, list(shares), op=summed(op), group=node)
    reduce_across(mine, op, node, across)
    divide(op, mine, ranks_per_node)
    shares[place].copy_(mine)
