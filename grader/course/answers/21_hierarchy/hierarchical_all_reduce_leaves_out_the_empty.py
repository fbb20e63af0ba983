# exercise: hierarchical_all_reduce
# diagnosis: order_mismatch
# hint: make the same calls on it, in the same order
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
    place = dist.get_rank() % ranks_per_node
    whole = x.flatten()
    shares = list(whole.tensor_split(ranks_per_node))
    mine = torch.empty_like(shares[place])
    if len(mine):
        dist.reduce_scatter(mine, [s.clone() for s in shares], op=sum_for_average(op), group=node)
        dist.all_reduce(mine, op=sum_for_average(op), group=across)
    if op == dist.ReduceOp.AVG:
        mine /= dist.get_world_size()
    size = len(shares[0])
    padded = mine.new_zeros(size)
    padded[: len(mine)] = mine
    heard = [torch.empty_like(padded) for _ in shares]
    dist.all_gather(heard, padded, group=node)
    x.copy_(torch.cat([h[: len(s)] for h, s in zip(heard, shares)]).view_as(x))
