# exercise: gather
# diagnosis: none
# Takes messages as they arrive by the returned source
import torch
import torch.distributed as dist


def gather(x, dst):
    n, r = dist.get_world_size(), dist.get_rank()
    if r != dst:
        return dist.send(x, dst)
    got = {r: x.clone()}
    while len(got) < n:
        b = torch.empty_like(x)
        got[dist.recv(b)] = b
    return [got[i] for i in range(n)]
