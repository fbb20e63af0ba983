"""That rank does not exist: the ranks are 0 to n − 1, and to the right of the last one is rank 0.
Is the partner's rank taken modulo n?"""
# exercise: barrier
# diagnosis: exception
# or: TO, FROM = as_it_is, around
# or: TO, FROM = around, as_it_is

import torch
import torch.distributed as dist


def around(rank):
    return rank % dist.get_world_size()


def as_it_is(rank):
    return rank


TO, FROM = as_it_is, as_it_is


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        request = dist.isend(torch.zeros(1), TO(rank + step))
        dist.recv(torch.zeros(1), FROM(rank - step))
        request.wait()
        step *= 2
