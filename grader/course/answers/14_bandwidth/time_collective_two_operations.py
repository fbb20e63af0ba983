"""Two operations of yours are in the time, beside fn. Read the clock right before the first call
that counts, and right after the last.
"""
# exercise: time_collective
# diagnosis: wrong_value
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    started = time.perf_counter()
    dist.barrier()
    for _ in range(iterations):
        fn()
    dist.barrier()
    slowest = torch.tensor((time.perf_counter() - started) / iterations, dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()
