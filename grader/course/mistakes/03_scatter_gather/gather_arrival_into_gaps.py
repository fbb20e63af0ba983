"""The list is in the order of arrival. A receive from any rank returns the rank that the message
came from: put the tensor in that place, or receive from a named rank."""
# exercise: gather
# diagnosis: wrong_value
# dst's own x is in its place; the others fill the gaps as they come.
import torch
import torch.distributed as dist


def gather(x, dst):
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    parts[dst].copy_(x)
    for rank, part in enumerate(parts):
        if rank != dst:
            dist.recv(part)
    return parts
