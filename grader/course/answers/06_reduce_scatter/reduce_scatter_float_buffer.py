# exercise: reduce_scatter
# diagnosis: dtype_mismatch
# hint: torch.empty_like(chunks[0])
import torch
import torch.distributed as dist


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    R = dist.ReduceOp
    total = chunks[rank].clone()
    for k in range(1, n):
        buffer = torch.empty(total.shape)
        request = dist.isend(chunks[(rank + k) % n], (rank + k) % n)
        dist.recv(buffer, (rank - k) % n)
        request.wait()
        if op == R.MIN:
            total = torch.minimum(total, buffer)
        elif op == R.MAX:
            total = torch.maximum(total, buffer)
        else:
            total = total + buffer
    return total / n if op == R.AVG else total
