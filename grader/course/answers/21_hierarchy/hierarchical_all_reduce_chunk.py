"""There are fewer pieces than ranks on the node. chunk(k) and split make at most k, and for many
lengths fewer; tensor_split(k) always gives k, some of them empty."""
# exercise: hierarchical_all_reduce
# diagnosis: exception
# or: BY_PLACE = True

BY_PLACE = False


def hierarchical_all_reduce(x, op, ranks_per_node):
    node, across = node_groups(ranks_per_node)
    shares = x.flatten().chunk(ranks_per_node)
    size = len(shares[0])
    pieces = [padded_to(share, size) if size else share for share in shares]
    mine = torch.empty_like(pieces[dist.get_rank() % ranks_per_node if BY_PLACE else 0])
    dist.reduce_scatter(mine, pieces, op=summed(op), group=node)
    reduce_across(mine, op, node, across)
    divide(op, mine, ranks_per_node)
    dist.all_gather(pieces, mine, group=node)
    x.copy_(torch.cat(pieces)[: x.numel()].view_as(x))
