"""The list arrives on rank 0. It belongs to dst, which is not always rank 0."""
# exercise: gather
# diagnosis: wrong_type
import torch
import torch.distributed as dist


def gather(x, dst):
    if dist.get_rank() != 0:
        dist.send(x, 0)
        return None
    parts = [x.clone()]
    for src in range(1, dist.get_world_size()):
        part = torch.empty_like(x)
        dist.recv(part, src)
        parts.append(part)
    return parts
