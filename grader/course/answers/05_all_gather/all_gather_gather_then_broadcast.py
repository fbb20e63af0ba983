# exercise: all_gather
# diagnosis: too_many_bytes
# hint: Without a root
# says: Right values, but
# earns: 0.5
# Rank 0 collects, and sends the whole list as one tensor.
import torch
import torch.distributed as dist


def gather_to(x, everything, root):
    if dist.get_rank() != root:
        dist.send(x, root)
        return
    everything[root] = x
    for r in range(dist.get_world_size()):
        if r != root:
            dist.recv(everything[r], r)


def broadcast_from(everything, root):
    if dist.get_rank() == root:
        for r in range(dist.get_world_size()):
            if r != root:
                dist.send(everything, r)
    else:
        dist.recv(everything, root)


def all_gather(x):
    everything = torch.empty((dist.get_world_size(), *x.shape), dtype=x.dtype)
    gather_to(x, everything, 0)
    broadcast_from(everything, 0)
    return list(everything)
