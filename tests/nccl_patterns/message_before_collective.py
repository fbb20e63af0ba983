"""A message is sent before a collective, and received after it.  Its communicator is set up by the
first message, where the sender waits for the receiver."""

# ranks: 3
# nccl: deadlock
# says: without a device_id, so that communicators are set up on first use

import torch
import torch.distributed as dist


def program():
    rank = dist.get_rank()
    if rank == 0:
        send = dist.isend(torch.ones(8), 1)  # named
    dist.all_reduce(torch.ones(1))  # named
    if rank == 0:
        send.wait()
    elif rank == 1:
        dist.recv(torch.empty(8), 0)
