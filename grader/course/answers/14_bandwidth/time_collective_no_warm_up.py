"""fn is called iterations times only: the calls to warm up are missing, warmup of them, before the
clock is read."""
# exercise: time_collective
# diagnosis: wrong_value
# not: are in the time
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    dist.barrier()
    started = time.perf_counter()
    for _ in range(iterations):
        fn()
    mean = (time.perf_counter() - started) / iterations
    slowest = torch.tensor(mean, dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()
