# exercise: ring_all_reduce
# diagnosis: none
# Equal chunks, and the last one takes what is left over.
import torch
import torch.distributed as dist


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = x.view(-1)
    k = flat.numel() // n
    chunks = [flat[i * k : (i + 1) * k] for i in range(n - 1)] + [flat[(n - 1) * k :]]
    for s in range(n - 1):
        mine = chunks[(rank - s - 1) % n]
        came = torch.empty_like(mine)
        requests = [
            dist.irecv(came, (rank + n - 1) % n),
            dist.isend(chunks[(rank - s) % n], (rank + 1) % n),
        ]
        [request.wait() for request in requests]
        if op == dist.ReduceOp.MIN:
            torch.minimum(mine, came, out=mine)
        elif op == dist.ReduceOp.MAX:
            torch.maximum(mine, came, out=mine)
        elif op == dist.ReduceOp.PRODUCT:
            mine *= came
        else:
            mine += came
    for s in range(n - 1):
        requests = [
            dist.irecv(chunks[(rank - s) % n], (rank + n - 1) % n),
            dist.isend(chunks[(rank - s + 1) % n], (rank + 1) % n),
        ]
        [request.wait() for request in requests]
    if op == dist.ReduceOp.AVG:
        flat /= n
