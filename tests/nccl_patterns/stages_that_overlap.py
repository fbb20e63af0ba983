"""Two ranks of a pipeline with two stages each begin a send before a receive, one by one:
pytorch/pytorch#172668, where [0SendF1, 2RecvF0] met [1SendF0, 1RecvF1]."""

# ranks: 2
# nccl: deadlock
# says: too large for NCCL's buffers

import torch
import torch.distributed as dist


def program():
    other = 1 - dist.get_rank()
    send = dist.isend(torch.ones(8), other)  # named
    receive = dist.irecv(torch.empty(8), other)
    receive.wait()
    send.wait()
