# exercise: ring_all_gather
# diagnosis: wrong_value
# hint: order in which they came
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone()]
    for _ in range(n - 1):
        part = torch.empty_like(x)
        request = dist.isend(parts[-1], (rank + 1) % n)
        dist.recv(part, (rank - 1) % n)
        request.wait()
        parts.append(part)
    return parts
