# exercise: ring_reduce_scatter
# diagnosis: none
import torch
import torch.distributed as dist


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [chunk.clone() for chunk in chunks]
    buffer = torch.empty_like(parts[0])
    for s in range(1, n):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(buffer, (rank - 1) % n)
        request.wait()
        mine = parts[(rank - s - 1) % n]
        if op == dist.ReduceOp.MIN:
            torch.minimum(mine, buffer, out=mine)
        elif op == dist.ReduceOp.MAX:
            torch.maximum(mine, buffer, out=mine)
        else:
            mine += buffer
    if op == dist.ReduceOp.AVG:
        parts[rank] /= n
    return parts[rank]
