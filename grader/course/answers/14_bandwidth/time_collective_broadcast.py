# exercise: time_collective
# diagnosis: forbidden_call
# hint: these two are enough
# says: broadcast is a collective
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
    mean = (time.perf_counter() - started) / iterations
    slowest = torch.tensor(mean, dtype=torch.float64)
    dist.broadcast(slowest, 0)
    return slowest.item()
