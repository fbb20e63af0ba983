"""Every rank returns its own time. Agree on one number, the slowest rank's: the operation is over
when the last rank is done."""
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
    mean = (time.perf_counter() - started) / iterations
    slowest = torch.tensor(mean, dtype=torch.float64)
    return slowest.item()
