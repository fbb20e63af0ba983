"""The same, but even ranks send where odd ones receive, as Megatron-LM's ``_p2p_ops`` does."""

# ranks: 4
# nccl: ends

import torch
import torch.distributed as dist


def program():
    rank, size = dist.get_rank(), dist.get_world_size()
    down, up = rank - 1, rank + 1
    if rank % 2 == 0:
        steps = [(dist.isend, up), (dist.irecv, down), (dist.isend, down), (dist.irecv, up)]
    else:
        steps = [(dist.irecv, down), (dist.isend, up), (dist.irecv, up), (dist.isend, down)]
    works = [step(torch.ones(8), peer) for step, peer in steps if 0 <= peer < size]
    for work in works:
        work.wait()
