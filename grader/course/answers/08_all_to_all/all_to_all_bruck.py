# exercise: all_to_all
# diagnosis: too_many_bytes
# hint: as in Bruck's algorithm
# says: bytes in all
# earns: 0.5
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    held = [chunks[(rank + i) % n].clone() for i in range(n)]
    step = 1
    while step < n:
        places = [i for i in range(n) if i & step]
        packed = torch.stack([held[i] for i in places])
        request = dist.isend(packed, (rank + step) % n)
        received = torch.empty_like(packed)
        dist.recv(received, (rank - step) % n)
        request.wait()
        for i, chunk in zip(places, received, strict=True):
            held[i] = chunk
        step *= 2
    return [held[(rank - j) % n] for j in range(n)]
