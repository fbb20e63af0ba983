# exercise: shift
# diagnosis: too_many_rounds
# hint: same round
# earns: 0.5
# Never hangs, but the messages wait for each other.
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    to, source = (rank + k) % n, (rank - k) % n
    if to == rank:
        return x.clone()
    y = torch.empty_like(x)
    if rank < to:
        dist.send(x, to)
        dist.recv(y, source)
    else:
        dist.recv(y, source)
        dist.send(x, to)
    return y
