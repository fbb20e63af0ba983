# exercise: gather
# diagnosis: none
import torch
import torch.distributed as dist


def gather(x, dst):
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = []
    for src in range(dist.get_world_size()):
        part = x.clone()
        if src != dst:
            dist.recv(part, src)
        parts.append(part)
    return parts
