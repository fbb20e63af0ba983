# exercise: broadcast
# diagnosis: wrong_value
# hint: Assigning to the name x
import torch
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        y = torch.empty_like(x)
        dist.recv(y, src)
        x = y
