# exercise: shift
# diagnosis: none
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    k %= n
    if k == 0:
        return torch.clone(x)
    out = torch.zeros_like(x)
    batch = [
        dist.P2POp(dist.irecv, out, (rank + n - k) % n),
        dist.P2POp(dist.isend, x, (rank + k) % n),
    ]
    for request in dist.batch_isend_irecv(batch):
        request.wait()
    return out
