"""What came from different ranks holds the same numbers. Are these entries one and the same
tensor, filled again and again? Make a new one for each rank: [buffer] * n is one tensor n times,
and so is a buffer that is made once, before the loop.
"""
# exercise: gather
# diagnosis: wrong_value
# or: OWN = "in its turn"
# or: OWN = "a clone"
import torch
import torch.distributed as dist

OWN = "first"


def gather(x, dst):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = [torch.empty_like(x)] * n
    if OWN == "first":
        parts[dst].copy_(x)
    for src in range(n):
        if src != dst:
            dist.recv(parts[src], src)
        elif OWN == "in its turn":
            parts[dst].copy_(x)
        elif OWN == "a clone":
            parts[dst] = x.clone()
    return parts
