"""Every entry of the list is dst's own x: what comes from rank r belongs in entry r. Are the
entries n different tensors? [buffer] * n is one tensor n times.
"""
# exercise: gather
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def gather(x, dst):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = [torch.empty_like(x)] * n
    for src in range(n):
        if src != dst:
            dist.recv(parts[src], src)
    parts[dst].copy_(x)
    return parts
