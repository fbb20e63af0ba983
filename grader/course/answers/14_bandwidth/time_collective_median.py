"""That is the median of the calls; the mean is asked for."""
# exercise: time_collective
# diagnosis: wrong_value
# not: last call alone
# or: MEDIAN = statistics.median_high
# or: MEDIAN = statistics.median_low
import statistics
import time

import torch
import torch.distributed as dist

MEDIAN = statistics.median


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    dist.barrier()
    times = []
    for _ in range(iterations):
        started = time.perf_counter()
        fn()
        times.append(time.perf_counter() - started)
    slowest = torch.tensor(MEDIAN(times))
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()
