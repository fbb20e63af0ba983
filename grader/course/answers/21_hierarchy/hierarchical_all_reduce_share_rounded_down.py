# exercise: hierarchical_all_reduce
# diagnosis: exception
# hint: does not divide this length
import torch
import torch.distributed as dist


def node_groups(ranks_per_node):
    n, rank = dist.get_world_size(), dist.get_rank()
    nodes = [list(range(first, first + ranks_per_node)) for first in range(0, n, ranks_per_node)]
    rails = [list(range(place, n, ranks_per_node)) for place in range(ranks_per_node)]
    made = [(members, dist.new_group(members)) for members in nodes + rails]
    node = next(group for members, group in made[: len(nodes)] if rank in members)
    return node, next(group for members, group in made[len(nodes) :] if rank in members)


def hierarchical_all_reduce(x, op, ranks_per_node):
    node, across = node_groups(ranks_per_node)
    average = op == dist.ReduceOp.AVG
    combine = dist.ReduceOp.SUM if average else op
    size = x.numel() // ranks_per_node
    padded = torch.cat([x.flatten(), x.new_zeros(size * ranks_per_node - x.numel())])
    mine = x.new_empty(size)
    dist.reduce_scatter_tensor(mine, padded, op=combine, group=node)
    dist.all_reduce(mine, op=combine, group=across)
    if average:
        mine /= dist.get_world_size()
    dist.all_gather_into_tensor(padded, mine, group=node)
    x.copy_(padded[: x.numel()].view_as(x))
