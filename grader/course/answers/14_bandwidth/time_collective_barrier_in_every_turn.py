"""An operation of yours is in the time of every call, as a barrier in the loop would be: line the
ranks up once, and then call fn without a break."""
# exercise: time_collective
# diagnosis: wrong_value
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    dist.barrier()
    started = time.perf_counter()
    for _ in range(iterations):
        fn()
        dist.barrier()
    slowest = torch.tensor((time.perf_counter() - started) / iterations)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()
