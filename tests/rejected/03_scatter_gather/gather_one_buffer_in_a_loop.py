# exercise: gather
# diagnosis: wrong_value
# hint: made once, before the loop
import torch
import torch.distributed as dist


def gather(x, dst):
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = []
    buffer = torch.empty_like(x)
    for src in range(dist.get_world_size()):
        if src == dst:
            parts.append(x.clone())
        else:
            dist.recv(buffer, src)
            parts.append(buffer)
    return parts
