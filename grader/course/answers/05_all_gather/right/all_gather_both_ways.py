# exercise: all_gather
# diagnosis: none
# A ring in both directions: half the steps, for each piece comes by the shorter way.
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for step in range(n // 2):
        requests = [
            dist.isend(parts[(rank - step) % n], right),
            dist.irecv(parts[(rank - step - 1) % n], left),
        ]
        if 2 * (step + 1) < n:  # else both ways are the same length, and one of them does
            requests.append(dist.isend(parts[(rank + step) % n], left))
            requests.append(dist.irecv(parts[(rank + step + 1) % n], right))
        for request in requests:
            request.wait()
    return parts
