# exercise: unblock_ring
# diagnosis: input_changed
# hint: receive into a tensor of your own
# Sends a copy, and receives into what belongs to the caller.
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    request = dist.isend(x.clone(), (rank + 1) % n)
    dist.recv(x, (rank - 1) % n)
    request.wait()
    return x.clone()
