# exercise: ring_reduce_scatter
# diagnosis: wrong_value
# hint: combined with zeros
# not: completes another chunk
# Combines before the message is there.
import torch
import torch.distributed as dist


def merge(op, a, b):
    if op == dist.ReduceOp.MIN:
        return torch.minimum(a, b)
    if op == dist.ReduceOp.MAX:
        return torch.maximum(a, b)
    return a + b


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [chunk.clone() for chunk in chunks]
    for s in range(1, n):
        i = (rank - s - 1) % n
        came = torch.zeros_like(parts[i])
        send = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        receive = dist.irecv(came, (rank - 1) % n)
        parts[i] = merge(op, parts[i], came)
        receive.wait()
        send.wait()
    return parts[rank] / n if op == dist.ReduceOp.AVG else parts[rank]
