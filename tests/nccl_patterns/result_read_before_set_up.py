"""The host reads a sum before it makes the first call of another group, which the other rank has
made before it joins the sum."""

# ranks: 3
# nccl: deadlock
# says: if the host reads a result after its wait()

import torch
import torch.distributed as dist


def program():
    rank = dist.get_rank()
    pair = dist.new_group([0, 1])
    dist.barrier()
    total = torch.ones(1)
    if rank == 0:
        send = dist.isend(torch.ones(8), 1, group=pair)  # named
        dist.all_reduce(total)
        send.wait()
    else:
        dist.all_reduce(total)  # named
        if total.item() and rank == 1:
            dist.recv(torch.empty(8), 0, group=pair)
