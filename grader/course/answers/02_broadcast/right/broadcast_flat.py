# exercise: broadcast
# diagnosis: none
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)
