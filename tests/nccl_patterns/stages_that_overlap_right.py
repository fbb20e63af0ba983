"""The same, but the lower rank begins with its receive, as pytorch/pytorch#178815 orders them."""

# ranks: 2
# nccl: ends

import torch
import torch.distributed as dist


def program():
    rank = dist.get_rank()
    other = 1 - rank
    if rank < other:
        works = [dist.irecv(torch.empty(8), other), dist.isend(torch.ones(8), other)]
    else:
        works = [dist.isend(torch.ones(8), other), dist.irecv(torch.empty(8), other)]
    for work in works:
        work.wait()
