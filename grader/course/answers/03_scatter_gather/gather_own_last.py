"""dst's own x comes last: entry r belongs to rank r."""
# exercise: gather
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def gather(x, dst):
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = []
    for src in range(dist.get_world_size()):
        if src != dst:
            part = torch.empty_like(x)
            dist.recv(part, src)
            parts.append(part)
    return [*parts, x.clone()]
