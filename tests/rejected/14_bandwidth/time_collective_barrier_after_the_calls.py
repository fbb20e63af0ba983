# exercise: time_collective
# diagnosis: wrong_value
# hint: in the time, beside fn
# not: after the barrier
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    started = time.perf_counter()
    for _ in range(iterations):
        fn()
    dist.barrier()
    mean = torch.tensor((time.perf_counter() - started) / iterations, dtype=torch.float64)
    dist.all_reduce(mean, op=dist.ReduceOp.MAX)
    return mean.item()
