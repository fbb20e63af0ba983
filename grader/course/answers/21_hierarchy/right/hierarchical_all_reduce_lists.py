# exercise: hierarchical_all_reduce
# diagnosis: none
# Lists of pieces, and the average on both levels.
import torch
import torch.distributed as dist
import torch.nn.functional as F


def groups(k):
    rank, n = dist.get_rank(), dist.get_world_size()
    lists = [list(range(i, i + k)) for i in range(0, n, k)] + [
        list(range(i, n, k)) for i in range(k)
    ]
    made = [dist.new_group(ranks) for ranks in lists]
    return [group for group, ranks in zip(made, lists) if rank in ranks]


def average(tensor, group):
    tensor /= dist.get_world_size(group)


def hierarchical_all_reduce(x, op, ranks_per_node):
    node, across = groups(ranks_per_node)
    how = dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op
    flat = F.pad(x.flatten(), (0, -x.numel() % ranks_per_node))
    pieces = list(flat.chunk(ranks_per_node)) if len(flat) else [flat] * ranks_per_node
    mine = torch.empty_like(pieces[0])
    dist.reduce_scatter(mine, [piece.clone() for piece in pieces], how, node)
    if op == dist.ReduceOp.AVG:
        average(mine, node)
    dist.all_reduce(mine, how, across)
    if op == dist.ReduceOp.AVG:
        average(mine, across)
    dist.all_gather(pieces, mine, node)
    x.copy_(torch.cat(pieces)[: x.numel()].view_as(x))
