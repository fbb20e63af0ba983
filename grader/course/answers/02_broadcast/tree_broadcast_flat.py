"""The source sends every message itself, one after the other. A rank that has x can pass it on
while the source sends to the next."""
# exercise: tree_broadcast
# diagnosis: too_many_rounds
# alike: messages
# says: the point of this exercise
# earns: 0.5
import torch
import torch.distributed as dist


def tree_broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)
