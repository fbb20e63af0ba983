# exercise: unblock_ring
# diagnosis: wrong_value
# hint: Neighbours swap in pairs
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    partner = rank ^ 1
    y = x.clone()
    if partner < n:
        if rank < partner:
            dist.send(x, partner)
            dist.recv(y, partner)
        else:
            dist.recv(y, partner)
            dist.send(x, partner)
    return y
