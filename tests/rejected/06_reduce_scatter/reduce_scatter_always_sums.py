# exercise: reduce_scatter
# diagnosis: wrong_value
# hint: Whatever op says
# not: zeros | exchanged
import torch
import torch.distributed as dist


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = chunks[rank].clone()
    for k in range(1, n):
        buffer = torch.empty_like(total)
        request = dist.isend(chunks[(rank + k) % n], (rank + k) % n)
        dist.recv(buffer, (rank - k) % n)
        request.wait()
        total += buffer
    return total / n if op == dist.ReduceOp.AVG else total
