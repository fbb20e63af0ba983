"""The calls to warm up are in the time. They are there to be discarded: connections, caches and
memory are set up in them."""
# exercise: time_collective
# diagnosis: wrong_value
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    dist.barrier()
    started = time.perf_counter()
    for _ in range(warmup + iterations):
        fn()
    slowest = torch.tensor((time.perf_counter() - started) / iterations)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()
