# exercise: tree_broadcast
# diagnosis: too_many_rounds
# hint: That is a chain
# earns: 0.5
import torch
import torch.distributed as dist


def tree_broadcast(x, src):
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n
    if v:
        dist.recv(x, (v - 1 + src) % n)
    if v + 1 < n:
        dist.send(x, (v + 1 + src) % n)
