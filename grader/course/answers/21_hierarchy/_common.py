"""The right answers of this chapter, in which most of its mistakes change a part."""
import torch
import torch.distributed as dist


def blocks_of(k):
    return [list(range(first, first + k)) for first in range(0, dist.get_world_size(), k)]


def rails_of(k):
    return [list(range(place, dist.get_world_size(), k)) for place in range(k)]


def made(groups):
    """Make all groups, and return the one that this rank is in."""
    mine = None
    for members in groups:
        group = dist.new_group(members)
        if dist.get_rank() in members:
            mine = group
    return mine


def node_groups(ranks_per_node):
    return made(blocks_of(ranks_per_node)), made(rails_of(ranks_per_node))


def summed(op):
    return dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op


def padded_to(x, k):
    padded = x.new_zeros(-(-x.numel() // k) * k)
    padded[: x.numel()] = x.flatten()
    return padded


def reduce_in_node(mine, padded, op, node):
    dist.reduce_scatter_tensor(mine, padded, op=summed(op), group=node)


def reduce_across(mine, op, node, across):
    dist.all_reduce(mine, op=summed(op), group=across)


def divide(op, mine, k):
    if op == dist.ReduceOp.AVG:
        mine /= dist.get_world_size()


def gather_in_node(padded, mine, node):
    dist.all_gather_into_tensor(padded, mine, group=node)


def result_of(x, op, ranks_per_node):
    node, across = node_groups(ranks_per_node)
    padded = padded_to(x, ranks_per_node)
    mine = padded.new_empty(len(padded) // ranks_per_node)
    reduce_in_node(mine, padded, op, node)
    reduce_across(mine, op, node, across)
    divide(op, mine, ranks_per_node)
    gather_in_node(padded, mine, node)
    return padded[: x.numel()].view_as(x)


def hierarchical_all_reduce(x, op, ranks_per_node):
    x.copy_(result_of(x, op, ranks_per_node))
