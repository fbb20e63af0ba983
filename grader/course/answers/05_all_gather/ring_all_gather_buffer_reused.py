# exercise: ring_all_gather
# diagnosis: buffer_race
# hint: Receive into a new tensor
# Receives into the buffer that is still being sent.
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    buffer = x.clone()
    for s in range(1, n):
        request = dist.isend(buffer, (rank + 1) % n)
        dist.recv(buffer, (rank - 1) % n)
        request.wait()
        parts[(rank - s) % n].copy_(buffer)
    return parts
