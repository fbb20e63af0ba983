# exercise: gather
# diagnosis: wrong_value
# hint: The list is in the order of
# Any source into slots by arrival
import torch
import torch.distributed as dist


def gather(x, dst):
    n, r = dist.get_world_size(), dist.get_rank()
    if r != dst:
        dist.send(x, dst)
        return None
    out = [torch.empty_like(x) for i in range(n)]
    out[r].copy_(x)
    for i in range(n):
        if i != r:
            dist.recv(out[i])
    return out
