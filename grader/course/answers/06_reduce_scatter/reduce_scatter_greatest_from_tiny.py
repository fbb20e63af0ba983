# exercise: reduce_scatter
# diagnosis: wrong_value
# hint: 0, or a number close to it
import torch
import torch.distributed as dist

R = dist.ReduceOp


def reduce_scatter(chunks, op):
    n, rank = dist.get_world_size(), dist.get_rank()
    total, came = chunks[rank].clone(), torch.empty_like(chunks[rank])
    if op == R.MAX and total.is_floating_point():
        total.clamp_(min=torch.finfo(total.dtype).tiny)
    for step in range(1, n):
        to, source = (rank + step) % n, (rank - step) % n
        request = dist.isend(chunks[to], to)
        dist.recv(came, source)
        request.wait()
        total = {R.MIN: torch.minimum, R.MAX: torch.maximum}.get(op, torch.add)(total, came)
    return total / n if op == R.AVG else total
