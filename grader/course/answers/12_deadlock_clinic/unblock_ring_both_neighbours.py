# exercise: unblock_ring
# diagnosis: too_many_messages
# hint: One message from each rank
# Swaps with both neighbours and throws half of it away.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    if n == 1:
        return x.clone()
    from_left, from_right = torch.empty_like(x), torch.empty_like(x)
    requests = [
        dist.isend(x, right, tag=1),
        dist.isend(x, left, tag=2),
        dist.irecv(from_left, left, tag=1),
        dist.irecv(from_right, right, tag=2),
    ]
    for request in requests:
        request.wait()
    return from_left
