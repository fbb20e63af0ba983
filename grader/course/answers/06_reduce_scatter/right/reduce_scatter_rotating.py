# exercise: reduce_scatter
# diagnosis: none
import torch
import torch.distributed as dist


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = chunks[rank].clone()
    buffer = torch.empty_like(total)
    for k in range(1, n):
        to, source = (rank + k) % n, (rank - k) % n
        request = dist.isend(chunks[to], to)
        dist.recv(buffer, source)
        request.wait()
        if op == dist.ReduceOp.MIN:
            torch.minimum(total, buffer, out=total)
        elif op == dist.ReduceOp.MAX:
            torch.maximum(total, buffer, out=total)
        else:
            total += buffer
    if op == dist.ReduceOp.AVG:
        total /= n
    return total
