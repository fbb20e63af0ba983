# exercise: ring_all_gather
# diagnosis: wrong_value
# hint: two buffers
# not: two ranks
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    buffers = [torch.empty_like(x), torch.empty_like(x)]
    parts = [x.clone() for _ in range(n)]
    moving = x
    for s in range(1, n):
        came = buffers[s % 2]
        request = dist.isend(moving, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        parts[(rank - s) % n] = came
        moving = came
    return parts
