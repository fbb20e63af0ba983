# exercise: time_collective
# diagnosis: none
# An all_reduce lines ranks up as a barrier does; the largest total is the slowest mean.
import torch
import torch.distributed as dist
from time import monotonic_ns


def _now():
    return monotonic_ns()


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    dist.all_reduce(torch.zeros(1))
    started = _now()
    for _ in range(iterations):
        fn()
    taken = torch.tensor([_now() - started])
    dist.all_reduce(taken, op=dist.ReduceOp.MAX)
    return taken.item() * 1e-9 / iterations
