# exercise: hierarchical_all_reduce
# diagnosis: none
# First as many elements as divide evenly, then the few that are left, with padding.
import torch
import torch.distributed as dist


def two_levels(flat, op, node, across):
    mine = flat.new_empty(len(flat) // dist.get_world_size(node))
    dist.reduce_scatter_tensor(mine, flat, op=op, group=node)
    # reduce-scatter and all-gather across are an all-reduce, too
    if len(mine) % dist.get_world_size(across) == 0 and len(mine):
        part = mine.new_empty(len(mine) // dist.get_world_size(across))
        dist.reduce_scatter_tensor(part, mine, op=op, group=across)
        dist.all_gather_into_tensor(mine, part, group=across)
    else:
        dist.all_reduce(mine, op=op, group=across)
    dist.all_gather_into_tensor(flat, mine, group=node)


def hierarchical_all_reduce(x, op, ranks_per_node):
    n, k = dist.get_world_size(), ranks_per_node
    node, _ = dist.new_subgroups(k)
    across, _ = dist.new_subgroups_by_enumeration([list(range(i, n, k)) for i in range(k)])
    how = dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op
    flat = x.reshape(-1).clone()
    even = len(flat) // k * k
    if even:
        two_levels(flat[:even], how, node, across)
    rest = flat.new_zeros(k)
    rest[: len(flat) - even] = flat[even:]
    if even < len(flat):
        two_levels(rest, how, node, across)
        flat[even:] = rest[: len(flat) - even]
    x.copy_(flat.reshape(x.shape))
    if op == dist.ReduceOp.AVG:
        x /= n
