# exercise: gather
# diagnosis: wrong_value
# hint: one and the same tensor
import torch
import torch.distributed as dist


def gather(x, dst):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = [torch.empty_like(x)] * n
    parts[dst].copy_(x)
    for src in range(n):
        if src != dst:
            dist.recv(parts[src], src)
    return parts
