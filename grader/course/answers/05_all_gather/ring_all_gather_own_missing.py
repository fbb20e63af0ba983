# exercise: ring_all_gather
# diagnosis: wrong_value
# hint: Your own x is not in your list
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return [x.clone()]
    parts = [torch.zeros_like(x) for _ in range(n)]
    outgoing = x
    for s in range(1, n):
        request = dist.isend(outgoing, (rank + 1) % n)
        dist.recv(parts[(rank - s) % n], (rank - 1) % n)
        request.wait()
        outgoing = parts[(rank - s) % n]
    return parts
