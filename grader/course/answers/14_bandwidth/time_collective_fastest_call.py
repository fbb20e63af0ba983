"""That is the fastest of the calls; the mean is asked for."""
# exercise: time_collective
# diagnosis: wrong_value
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    dist.barrier()
    times = []
    for _ in range(iterations):
        started = time.perf_counter()
        fn()
        times.append(time.perf_counter() - started)
    slowest = torch.tensor(min(times))
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()
