# exercise: barrier
# diagnosis: dtype_mismatch
# hint: its dtype does
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        request = dist.isend(torch.tensor([rank]), (rank + step) % n)
        dist.recv(torch.zeros(1), (rank - step) % n)
        request.wait()
        step *= 2
