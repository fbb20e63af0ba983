# exercise: reduce_scatter
# diagnosis: none
# n reduces, one to each rank, all calls blocking.
import torch
import torch.distributed as dist

COMBINE = {"MIN": torch.minimum, "MAX": torch.maximum}


def combine(op, a, b):
    for name, function in COMBINE.items():
        if op == getattr(dist.ReduceOp, name):
            return function(a, b)
    return a + b


def reduce_to(chunk, dst, op):
    if dist.get_rank() != dst:
        dist.send(chunk, dst)
        return None
    total = chunk.clone()
    for src in range(dist.get_world_size()):
        if src != dst:
            part = torch.empty_like(chunk)
            dist.recv(part, src)
            total = combine(op, total, part)
    return total


def reduce_scatter(chunks, op):
    results = [reduce_to(chunk, dst, op) for dst, chunk in enumerate(chunks)]
    mine = results[dist.get_rank()]
    return mine / len(chunks) if op == dist.ReduceOp.AVG else mine
