# exercise: hierarchical_all_reduce
# diagnosis: too_many_bytes
# hint: The groups are swapped
import torch
import torch.distributed as dist


def groups(k):
    n = dist.get_world_size()
    node, _ = dist.new_subgroups(k)
    across, _ = dist.new_subgroups_by_enumeration([list(range(i, n, k)) for i in range(k)])
    return node, across


def sum_for_average(op):
    return dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op


def padded_to(x, k):
    padded = x.new_zeros(-(-x.numel() // k) * k)
    padded[: x.numel()] = x.flatten()
    return padded


def hierarchical_all_reduce(x, op, ranks_per_node):
    n = dist.get_world_size()
    node, across = groups(ranks_per_node)
    padded = padded_to(x, n // ranks_per_node)
    mine = padded.new_empty(len(padded) * ranks_per_node // n)
    dist.reduce_scatter_tensor(mine, padded, op=sum_for_average(op), group=across)
    dist.all_reduce(mine, op=sum_for_average(op), group=node)
    dist.all_gather_into_tensor(padded, mine, group=across)
    x.copy_(padded[: x.numel()].view_as(x))
    if op == dist.ReduceOp.AVG:
        x /= n
