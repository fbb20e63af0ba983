"""dst's own x comes first, and the others follow: entry r belongs to rank r, whatever the order of
arrival.
"""
# exercise: gather
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def gather(x, dst):
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = [x.clone()]
    for src in range(dist.get_world_size()):
        if src != dst:
            part = torch.empty_like(x)
            dist.recv(part, src)
            parts.append(part)
    return parts
