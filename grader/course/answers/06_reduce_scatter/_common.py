"""What the mistakes of this chapter share."""

import torch
import torch.distributed as dist

R = dist.ReduceOp


def merge(op, a, b):
    if op == R.MIN:
        return torch.minimum(a, b)
    if op == R.MAX:
        return torch.maximum(a, b)
    return a + b


def swap(out, to, source):
    """Send and receive at the same time."""
    came = torch.empty_like(out)
    request = dist.isend(out, to)
    dist.recv(came, source)
    request.wait()
    return came


def arrivals(chunks):
    """Chunk number rank of each other rank."""
    rank, n = dist.get_rank(), dist.get_world_size()
    for k in range(1, n):
        yield swap(chunks[(rank + k) % n], (rank + k) % n, (rank - k) % n)


def direct(chunks, op):
    """A reduce-scatter without a division."""
    total = chunks[dist.get_rank()].clone()
    for came in arrivals(chunks):
        total = merge(op, total, came)
    return total


def ring(chunks, op):
    """The same around a ring."""
    rank, n = dist.get_rank(), dist.get_world_size()
    partial = chunks[rank - 1].clone()
    for s in range(2, n + 1):
        came = swap(partial, (rank + 1) % n, (rank - 1) % n)
        partial = merge(op, came, chunks[(rank - s) % n])
    return partial


def finished(total, op):
    return total / dist.get_world_size() if op == R.AVG else total
