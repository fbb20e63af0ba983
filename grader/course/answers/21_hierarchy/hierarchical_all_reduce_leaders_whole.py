# exercise: hierarchical_all_reduce
# diagnosis: too_many_bytes
# hint: while the node's other ranks
# The first rank of each node takes the node's whole sum across, and the others get it from there.
import torch
import torch.distributed as dist


def hierarchical_all_reduce(x, op, ranks_per_node):
    n = dist.get_world_size()
    node, _ = dist.new_subgroups(ranks_per_node)
    leaders = dist.new_group(list(range(0, n, ranks_per_node)))
    total = dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op
    dist.all_reduce(x, op=total, group=node)
    if dist.get_rank() % ranks_per_node == 0:
        dist.all_reduce(x, op=total, group=leaders)
    parts = [torch.empty_like(x) for _ in range(ranks_per_node)]
    dist.all_gather(parts, x, group=node)
    x.copy_(parts[0])
    if op == dist.ReduceOp.AVG:
        x /= n
