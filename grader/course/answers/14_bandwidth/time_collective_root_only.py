# exercise: time_collective
# diagnosis: deadlock
# hint: A collective has to be called by all of them
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    if dist.get_rank() == 0:
        dist.barrier()
    started = time.perf_counter()
    for _ in range(iterations):
        fn()
    slowest = torch.tensor((time.perf_counter() - started) / iterations)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()
