"""What the mistakes of this chapter share."""
import math

import torch
import torch.distributed as dist


def combine(op, mine, came):
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came


def divide(op, mine, n):
    if op == dist.ReduceOp.AVG:
        mine /= n


def exchange(out, into, other):
    request = dist.isend(out, other)
    dist.recv(into, other)
    request.wait()


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    came = torch.empty_like(x)
    if rank + power < n:
        dist.recv(came, rank + power)
        combine(op, x, came)
    for k in range(power.bit_length() - 1):
        exchange(x, came, rank ^ (1 << k))
        combine(op, x, came)
    divide(op, x, n)
    if rank + power < n:
        dist.send(x, rank + power)


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    if rank + power < n:
        came = torch.empty_like(x)
        dist.recv(came, rank + power)
        combine(op, x, came)
    mine, done = x.view(-1), []
    steps = [1 << k for k in range(power.bit_length() - 1)]
    for step in steps:
        low, high = mine.tensor_split(2)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        exchange(given, came, rank ^ step)
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    divide(op, mine, n)
    for step, kept, given in reversed(done):
        exchange(kept, given, rank ^ step)
    if rank + power < n:
        dist.send(x, rank + power)
