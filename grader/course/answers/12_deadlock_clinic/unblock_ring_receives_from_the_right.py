# exercise: unblock_ring
# diagnosis: deadlock
# hint: is received from rank − 1
# not: before it has posted its receive
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    send = dist.isend(x, (rank + 1) % n)
    receive = dist.irecv(y, (rank + 1) % n)
    send.wait()
    receive.wait()
    return y
