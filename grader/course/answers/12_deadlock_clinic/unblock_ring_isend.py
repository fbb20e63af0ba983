# exercise: unblock_ring
# diagnosis: too_many_messages
# hint: Here send and recv have to do
# says: calls of isend and irecv
# earns: 0.5
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + 1) % n)
    dist.recv(y, (rank - 1) % n)
    request.wait()
    return y
