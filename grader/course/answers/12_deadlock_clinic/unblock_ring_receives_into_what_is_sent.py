# exercise: unblock_ring
# diagnosis: buffer_race
# hint: While a tensor is on its way
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    y = x.clone()
    if n == 1:
        return y
    request = dist.isend(y, (rank + 1) % n)
    dist.recv(y, (rank - 1) % n)
    request.wait()
    return y
