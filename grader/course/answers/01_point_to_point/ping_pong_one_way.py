# exercise: ping_pong
# diagnosis: wrong_peer
# hint: Only ranks 0 and 1 play
# says: from rank 0 to rank 1
# Rank 0 adds 1 itself, and sends twice.
import torch
import torch.distributed as dist


def ping_pong(x):
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.send(x, 1)
        return x + 1
    if dist.get_rank() == 1:
        dist.recv(torch.empty_like(x), 0)
        dist.recv(torch.empty_like(x), 0)
    return x.clone()
