# exercise: time_collective
# diagnosis: wrong_value
# hint: No time has passed between your two readings
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    dist.barrier()
    started = time.perf_counter()
    seconds = time.perf_counter() - started
    for _ in range(iterations):
        fn()
    slowest = torch.tensor(seconds / iterations, dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()
