"""The pieces go round to the left, but you put them where they would belong if they went to the
right. Send to (rank + 1) % n and receive from (rank − 1) % n. (On a ring to the left, piece (rank
+ s) % n comes in round s = 1 … n − 1.)"""
# exercise: ring_all_gather
# diagnosis: wrong_value
# alike: messages
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank + 1) % n, (rank - 1) % n
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for s in range(n - 1):
        request = dist.isend(parts[(rank - s) % n], right)
        dist.recv(parts[(rank - s - 1) % n], left)
        request.wait()
    return parts
