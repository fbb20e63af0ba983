"""Two stages are each other's previous and next one, and batch their shapes in the same order; only
tags tell them apart.  The fix of NVIDIA/Megatron-LM#5100 (#5271) names this as its cause."""

# ranks: 2
# nccl: wrong_value
# says: there are no tags

import torch
import torch.distributed as dist
from torch.distributed import P2POp

FORWARD, BACKWARD = 1, 2


def program():
    rank = dist.get_rank()
    other = 1 - rank
    batch = [
        P2POp(dist.isend, torch.full((3,), -1), other, tag=BACKWARD),
        P2POp(dist.irecv, activations := torch.empty(3).long(), other, tag=FORWARD),
        P2POp(dist.isend, torch.full((3,), 1), other, tag=FORWARD),
        P2POp(dist.irecv, gradients := torch.empty(3).long(), other, tag=BACKWARD),
    ]
    for work in dist.batch_isend_irecv(batch):  # named
        work.wait()
    return activations.tolist(), gradients.tolist()
