# exercise: ring_all_gather
# diagnosis: wrong_value
# hint: one and the same tensor
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone()] * n
    for s in range(n - 1):
        outgoing = parts[(rank - s) % n].clone()
        request = dist.isend(outgoing, (rank + 1) % n)
        dist.recv(parts[(rank - s - 1) % n], (rank - 1) % n)
        request.wait()
    return parts
