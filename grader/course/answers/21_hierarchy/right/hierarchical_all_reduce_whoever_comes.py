# exercise: hierarchical_all_reduce
# diagnosis: none
# Across, the first node collects from whichever node comes first.
import torch
import torch.distributed as dist

COMBINE = {
    dist.ReduceOp.SUM: torch.add,
    dist.ReduceOp.AVG: torch.add,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.MAX: torch.maximum,
    dist.ReduceOp.PRODUCT: torch.mul,
}


def hierarchical_all_reduce(x, op, ranks_per_node):
    rank, n, k = dist.get_rank(), dist.get_world_size(), ranks_per_node
    node, _ = dist.new_subgroups(k)
    across, _ = dist.new_subgroups_by_enumeration([list(range(i, n, k)) for i in range(k)])
    combine = next(function for known, function in COMBINE.items() if known == op)
    how = dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op
    size = -(-x.numel() // k)
    padded = x.new_zeros(size * k)
    padded[: x.numel()] = x.flatten()
    mine = padded.new_empty(size)
    dist.reduce_scatter_tensor(mine, padded, op=how, group=node)
    root = rank % k
    if rank == root:
        came = torch.empty_like(mine)
        for _ in range(n // k - 1):
            dist.recv(came, group=across)
            mine = combine(mine, came)
        if op == dist.ReduceOp.AVG:
            mine = mine / n
        for peer in range(root + k, n, k):
            dist.send(mine, peer, group=across)
    else:
        dist.send(mine, root, group=across)
        dist.recv(mine, root, group=across)
    dist.all_gather_into_tensor(padded, mine, group=node)
    x.copy_(padded[: x.numel()].view_as(x))
