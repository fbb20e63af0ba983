# exercise: barrier
# diagnosis: buffer_race
# hint: one buffer per irecv
# not: that is being sent | ✓
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    step, token, heard = 1, torch.zeros(1), torch.zeros(1)
    pending = []
    while step < n:
        pending.append(dist.isend(token, (rank + step) % n))
        pending.append(dist.irecv(heard, (rank - step) % n))
        step *= 2
    for request in pending:
        request.wait()
