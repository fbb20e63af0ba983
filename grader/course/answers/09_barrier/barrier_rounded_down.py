# exercise: barrier
# diagnosis: not_synchronized
# hint: n, rounded up
import math

import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    token = torch.zeros(1)
    for k in range(int(math.log2(n))):
        request = dist.isend(token, (rank + 2**k) % n)
        dist.recv(torch.zeros(1), (rank - 2**k) % n)
        request.wait()
