"""Three ranks pass messages around a ring, each of them sending first and receiving afterwards: the
circle of NVIDIA/nccl#784, with the messages outside of a group."""

# ranks: 3
# nccl: deadlock
# says: without a device_id, so that communicators are set up on first use

import torch
import torch.distributed as dist


def program():
    rank, size = dist.get_rank(), dist.get_world_size()
    send = dist.isend(torch.ones(8), (rank + 1) % size)  # named
    dist.recv(torch.empty(8), (rank - 1) % size)
    send.wait()
