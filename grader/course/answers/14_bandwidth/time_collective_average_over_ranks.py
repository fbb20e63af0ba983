"""That is the average over ranks. The operation is over when the last rank is done, so the slowest
one's time counts: MAX."""
# exercise: time_collective
# diagnosis: wrong_value
# or: DTYPE = torch.float32
import time

import torch
import torch.distributed as dist

DTYPE = torch.float64


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    dist.barrier()
    started = time.perf_counter()
    for _ in range(iterations):
        fn()
    mean = (time.perf_counter() - started) / iterations
    slowest = torch.tensor(mean, dtype=DTYPE)
    dist.all_reduce(slowest)
    return (slowest / dist.get_world_size()).item()
