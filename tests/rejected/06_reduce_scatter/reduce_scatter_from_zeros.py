# exercise: reduce_scatter
# diagnosis: wrong_value
# hint: you begin with zeros
import torch
import torch.distributed as dist


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    R = dist.ReduceOp
    total = torch.zeros_like(chunks[rank])
    for k in range(n):
        part = chunks[rank].clone()
        if k:
            request = dist.isend(chunks[(rank + k) % n], (rank + k) % n)
            dist.recv(part, (rank - k) % n)
            request.wait()
        if op == R.MIN and n > 1:
            total = torch.minimum(total, part)
        elif op == R.MAX and n > 1:
            total = torch.maximum(total, part)
        else:
            total = total + part
    return total / n if op == R.AVG else total
