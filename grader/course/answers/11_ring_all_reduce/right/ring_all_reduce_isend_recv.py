# exercise: ring_all_reduce
# diagnosis: none
import torch
import torch.distributed as dist


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = x.view(-1).tensor_split(n)
    for s in range(1, n):
        mine = chunks[(rank - s - 1) % n]
        buffer = torch.empty_like(mine)
        request = dist.isend(chunks[(rank - s) % n], right)
        dist.recv(buffer, left)
        request.wait()
        if op == dist.ReduceOp.MIN:
            torch.minimum(mine, buffer, out=mine)
        elif op == dist.ReduceOp.MAX:
            torch.maximum(mine, buffer, out=mine)
        elif op == dist.ReduceOp.PRODUCT:
            mine *= buffer
        else:
            mine += buffer
    if op == dist.ReduceOp.AVG:
        chunks[rank].div_(n)
    for s in range(1, n):
        request = dist.isend(chunks[(rank - s + 1) % n], right)
        dist.recv(chunks[(rank - s) % n], left)
        request.wait()
