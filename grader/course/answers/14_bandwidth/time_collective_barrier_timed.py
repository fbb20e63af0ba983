"""One operation of yours is in the time, beside fn. Read the clock right before the first call
that counts, and right after the last, with nothing else in between: the barrier comes before the
first reading."""
# exercise: time_collective
# diagnosis: wrong_value
# not: clock after it
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
    mean = (time.perf_counter() - started) / iterations
    slowest = torch.tensor(mean, dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()
