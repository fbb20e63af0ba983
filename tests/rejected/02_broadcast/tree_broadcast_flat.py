# exercise: tree_broadcast
# diagnosis: too_many_rounds
# hint: The source sends every message itself
# says: the point of this exercise
# earns: 0.5
import torch
import torch.distributed as dist


def tree_broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)
