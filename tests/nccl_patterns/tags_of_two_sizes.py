"""Two messages of different sizes are received in another order than they are sent in, by their
tags."""

# ranks: 2
# nccl: size_mismatch
# says: there are no tags

import torch
import torch.distributed as dist


def program():
    if dist.get_rank() == 0:
        works = [dist.isend(torch.ones(4), 1, tag=4), dist.isend(torch.ones(8), 1, tag=8)]  # named
    else:
        works = [dist.irecv(torch.ones(8), 0, tag=8), dist.irecv(torch.ones(4), 0, tag=4)]
    for work in works:
        work.wait()
