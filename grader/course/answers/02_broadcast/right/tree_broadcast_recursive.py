# exercise: tree_broadcast
# diagnosis: none
import torch
import torch.distributed as dist


def spread(x, members):
    """The first of the members has x; it gives it to the first of the other half."""
    if len(members) == 1:
        return
    half = (len(members) + 1) // 2
    rank = dist.get_rank()
    if rank == members[0]:
        dist.send(x, members[half])
    elif rank == members[half]:
        dist.recv(x, members[0])
    spread(x, members[:half] if rank in members[:half] else members[half:])


def tree_broadcast(x, src):
    n = dist.get_world_size()
    spread(x, [(src + i) % n for i in range(n)])
