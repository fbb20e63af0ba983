# exercise: gather
# diagnosis: wrong_value
# hint: order of arrival
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
