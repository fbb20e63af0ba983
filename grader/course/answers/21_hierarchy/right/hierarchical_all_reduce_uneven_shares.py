# exercise: hierarchical_all_reduce
# diagnosis: none
# Shares that differ by one element need no padding where messages hand them out.
import torch
import torch.distributed as dist


def hierarchical_all_reduce(x, op, ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    first, place = rank // ranks_per_node * ranks_per_node, rank % ranks_per_node
    make = lambda ranks: dist.new_group(ranks, use_local_synchronization=True)
    node = make([first + i for i in range(ranks_per_node)])
    across = make([i + place for i in range(0, n, ranks_per_node)])
    how = dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op
    whole = x.flatten()
    shares = whole.tensor_split(ranks_per_node)
    mine = torch.empty_like(shares[place])
    dist.reduce_scatter(mine, list(shares), op=how, group=node)
    dist.all_reduce(mine, op=how, group=across)
    if op == dist.ReduceOp.AVG:
        mine = mine / n
    shares[place].copy_(mine)
    others = [i for i in range(ranks_per_node) if i != place]
    requests = [dist.isend(mine, first + i) for i in others]
    requests += [dist.irecv(shares[i], first + i) for i in others]
    for request in requests:
        request.wait()
    x.copy_(whole.view(x.shape))
