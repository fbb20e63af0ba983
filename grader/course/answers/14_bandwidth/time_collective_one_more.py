"""fn is called too often: warmup times without the clock, and then iterations times with it."""
# exercise: time_collective
# diagnosis: wrong_value
# says: calls of fn should be 1
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    for _ in range(warmup + 1):
        fn()
    dist.barrier()
    started = time.perf_counter()
    for _ in range(iterations):
        fn()
    mean = (time.perf_counter() - started) / iterations
    slowest = torch.tensor(mean, dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()
