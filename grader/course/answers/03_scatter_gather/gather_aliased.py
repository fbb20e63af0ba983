# exercise: gather
# diagnosis: aliased
# hint: must be a copy
import torch
import torch.distributed as dist


def gather(x, dst):
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = []
    for src in range(dist.get_world_size()):
        if src == dst:
            parts.append(x)
        else:
            part = torch.empty_like(x)
            dist.recv(part, src)
            parts.append(part)
    return parts
