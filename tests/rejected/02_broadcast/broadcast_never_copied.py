# exercise: broadcast
# diagnosis: wrong_value
# hint: although messages were exchanged
# not: Assigning to the name | Nothing was sent
# What comes is received into another tensor, and stays there.
import torch
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(torch.empty_like(x), src)
