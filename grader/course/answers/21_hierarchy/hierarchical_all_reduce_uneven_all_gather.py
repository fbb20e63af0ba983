"""gloo's all_gather takes pieces of one size only. Where ranks_per_node does not divide the
length, pad x first, and cut the padding off afterwards."""
# exercise: hierarchical_all_reduce
# diagnosis: exception


def hierarchical_all_reduce(x, op, ranks_per_node):
    node, across = node_groups(ranks_per_node)
    shares = list(x.flatten().tensor_split(ranks_per_node))
    mine = torch.empty_like(shares[dist.get_rank() % ranks_per_node])
    dist.reduce_scatter(mine, [share.clone() for share in shares], op=summed(op), group=node)
    reduce_across(mine, op, node, across)
    divide(op, mine, ranks_per_node)
    dist.all_gather(shares, mine, group=node)
    x.copy_(torch.cat(shares).view_as(x))
