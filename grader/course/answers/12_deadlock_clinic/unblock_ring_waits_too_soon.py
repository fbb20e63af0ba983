# exercise: unblock_ring
# diagnosis: deadlock
# hint: isend does not wait, but wait() does
# not: start the sends with isend | start its send
# isend, and at once wait: that is send.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    dist.isend(x, (rank + 1) % n).wait()
    dist.irecv(y, (rank - 1) % n).wait()
    return y
