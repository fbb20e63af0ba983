"""That takes the slowest rank of each call, and then the mean. Take each rank's mean first, and
then the slowest of these."""
# exercise: time_collective
# diagnosis: wrong_value
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    total = 0.0
    for _ in range(iterations):
        dist.barrier()
        started = time.perf_counter()
        fn()
        slowest = torch.tensor(time.perf_counter() - started)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        total += slowest.item()
    return total / iterations
