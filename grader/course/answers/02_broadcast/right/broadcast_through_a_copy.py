# exercise: broadcast
# diagnosis: none
# Receives aside and copies; a class and a partial carry it.
import functools

import torch
import torch.distributed as dist


class Sender:
    def __init__(self, everyone):
        self.everyone = everyone

    def send(self, x, src):
        for request in [dist.isend(x, dst) for dst in self.everyone if dst != src]:
            request.wait()


def _broadcast(x, src, empty):
    if dist.get_rank() == src:
        Sender(range(dist.get_world_size())).send(x, src)
    else:
        buffer = empty(x)
        dist.recv(buffer, src)
        x[...] = buffer


broadcast = functools.partial(_broadcast, empty=torch.empty_like)
