"""The list begins with dst's own x and counts the ranks from there: entry r belongs to rank r."""
# exercise: gather
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def gather(x, dst):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = [x.clone()]
    for step in range(1, n):
        part = torch.empty_like(x)
        dist.recv(part, (dst + step) % n)
        parts.append(part)
    return parts
