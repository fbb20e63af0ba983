"""Every entry but your own is as you have made it: in the first round you send the entry of the rank
before you, which has not come yet. Begin with your own: in round s = 0, 1, … send entry rank − s, and
receive entry rank − s − 1.
"""
# exercise: ring_all_gather
# diagnosis: wrong_value
# alike: messages
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.zeros_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for s in range(1, n):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(parts[(rank - s - 1) % n], (rank - 1) % n)
        request.wait()
    return parts
