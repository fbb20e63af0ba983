# exercise: hierarchical_all_reduce
# diagnosis: too_many_bytes
# hint: what leaves a node is x ranks_per_node times
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
    node, across = groups(ranks_per_node)
    dist.all_reduce(x, op=sum_for_average(op), group=node)
    dist.all_reduce(x, op=sum_for_average(op), group=across)
    if op == dist.ReduceOp.AVG:
        x /= dist.get_world_size()
