# exercise: reduce_scatter
# diagnosis: none
# A sum does not care who comes first.
import torch
import torch.distributed as dist


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    sends = [dist.isend(chunk, to) for to, chunk in enumerate(chunks) if to != rank]
    total = chunks[rank].clone()
    for _ in sends:
        part = torch.empty_like(total)
        dist.recv(part)
        if op == dist.ReduceOp.MIN:
            total = total.minimum(part)
        elif op == dist.ReduceOp.MAX:
            total = total.maximum(part)
        else:
            total = total + part
    for send in sends:
        send.wait()
    return total / n if op == dist.ReduceOp.AVG else total
