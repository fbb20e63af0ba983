# exercise: hierarchical_all_reduce
# diagnosis: none
# Collectives inside the node; across, everyone sends its share to everyone with the same place.
from functools import lru_cache

import torch
import torch.distributed as dist

COMBINE = {
    dist.ReduceOp.SUM: torch.add,
    dist.ReduceOp.AVG: torch.add,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.MAX: torch.maximum,
    dist.ReduceOp.PRODUCT: torch.mul,
}


@lru_cache
def node_of(rank, ranks_per_node, n):
    first = rank - rank % ranks_per_node
    members = list(range(first, first + ranks_per_node))
    return dist.new_group(members, use_local_synchronization=True)


def all_reduce_across(mine, peers, combine):
    heard = [torch.empty_like(mine) for _ in peers]
    requests = [dist.isend(mine, peer) for peer in peers]
    requests += [dist.irecv(into, peer) for into, peer in zip(heard, peers)]
    for request in requests:
        request.wait()
    # the same order on all nodes, so that rounding is the same
    terms = [*heard, mine]
    order = sorted(range(len(terms)), key=lambda i: [*peers, dist.get_rank()][i])
    total = terms[order[0]]
    for i in order[1:]:
        total = combine(total, terms[i])
    return total


def hierarchical_all_reduce(x, op, ranks_per_node):
    rank, n, k = dist.get_rank(), dist.get_world_size(), ranks_per_node
    node = node_of(rank, k, n)
    combine = next(function for known, function in COMBINE.items() if known == op)
    size = (x.numel() + k - 1) // k
    padded = torch.cat([x.flatten(), x.new_ones(size * k - x.numel())])
    mine = padded.new_empty(size)
    how = dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op
    dist.reduce_scatter_tensor(mine, padded, op=how, group=node)
    peers = [other for other in range(rank % k, n, k) if other != rank]
    total = all_reduce_across(mine, peers, combine) if peers else mine
    if op == dist.ReduceOp.AVG:
        total = total / n
    dist.all_gather_into_tensor(padded, total, group=node)
    x.view(-1).copy_(padded[: x.numel()])
