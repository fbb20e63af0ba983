"""The pieces go round to the right, but you put them where they would belong if they went to the
left. What comes in round s = 1 … n − 1 is the piece of rank (rank − s) % n, so that is the entry to
put it into."""
# exercise: ring_all_gather
# diagnosis: wrong_value
# alike: messages
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for s in range(n - 1):
        request = dist.isend(parts[(rank + s) % n], (rank + 1) % n)
        dist.recv(parts[(rank + s + 1) % n], (rank - 1) % n)
        request.wait()
    return parts
