# exercise: unblock_ring
# diagnosis: buffer_race
# hint: belongs to the transport
# not: While a tensor is on its way | receive into
# Cleans up what is still being sent.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    y = torch.empty_like(x)
    if n == 1:
        return x.clone()
    sent = x.clone()
    request = dist.isend(sent, (rank + 1) % n)
    sent.zero_()
    dist.recv(y, (rank - 1) % n)
    request.wait()
    return y
