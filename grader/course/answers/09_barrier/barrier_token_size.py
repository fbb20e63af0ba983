# exercise: barrier
# diagnosis: size_mismatch
# hint: its size does
# Sends whom it has heard of, which is more in every round, but receives into one place.
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    known, step = [rank], 1
    while step < n:
        request = dist.isend(torch.tensor(known), (rank + step) % n)
        heard = torch.zeros(1, dtype=torch.int64)
        dist.recv(heard, (rank - step) % n)
        request.wait()
        known += heard.tolist()
        step *= 2
