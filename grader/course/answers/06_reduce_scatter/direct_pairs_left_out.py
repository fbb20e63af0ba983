# exercise: reduce_scatter
# diagnosis: wrong_value
# hint: ranks 1 and 2 never meet
import torch
import torch.distributed as dist

R = dist.ReduceOp
COMBINE = {R.MIN: torch.minimum, R.MAX: torch.maximum}


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total, buffer = chunks[rank].clone(), torch.empty_like(chunks[rank])
    for step in range(1, n):
        partner = rank ^ step
        if partner < n:
            request = dist.isend(chunks[partner], partner)
            dist.recv(buffer, partner)
            request.wait()
            total = COMBINE.get(op, torch.add)(total, buffer)
    return total / n if op == R.AVG else total
