# exercise: all_reduce_rooted
# diagnosis: none
# The last rank is the root; it takes everything at once, and reduces the stack.
import torch
import torch.distributed as dist


def reduce_to(root, x, op):
    n = dist.get_world_size()
    if dist.get_rank() != root:
        dist.isend(x, root).wait()
        return
    parts = torch.stack([x] * n)
    requests = [dist.irecv(parts[src], src) for src in range(n) if src != root]
    for request in requests:
        request.wait()
    ways = {
        dist.ReduceOp.SUM: lambda: parts.sum(0),
        dist.ReduceOp.AVG: lambda: parts.mean(0),
        dist.ReduceOp.MIN: lambda: parts.amin(0),
        dist.ReduceOp.MAX: lambda: parts.amax(0),
        dist.ReduceOp.PRODUCT: lambda: parts.prod(0),
    }
    x[...] = next(way() for known, way in ways.items() if known == op)


def broadcast_from(root, x):
    n = dist.get_world_size()
    if dist.get_rank() == root:
        requests = [dist.isend(x, dst) for dst in range(n) if dst != root]
    else:
        requests = [dist.irecv(x, root)]
    for request in requests:
        request.wait()


def all_reduce_rooted(x, op):
    root = dist.get_world_size() - 1
    reduce_to(root, x, op)
    broadcast_from(root, x)
