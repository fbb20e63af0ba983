# exercise: barrier
# diagnosis: none
# To the left, and with the largest step first: every rank is still some sum of steps away.
import math

import torch
import torch.distributed as dist


def tell_and_hear(to, source):
    heard = torch.empty(1, dtype=torch.int64)
    coming = dist.irecv(heard, source)
    dist.send(torch.tensor([dist.get_rank()]), to)
    coming.wait()


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    for k in reversed(range(math.ceil(math.log2(n)))):
        tell_and_hear((rank - (1 << k)) % n, (rank + (1 << k)) % n)
