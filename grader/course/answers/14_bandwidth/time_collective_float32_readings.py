"""A reading of the clock has more digits than float32 can hold, which torch.tensor makes of it:
subtract first, and make a tensor of the difference."""
# exercise: time_collective
# diagnosis: wrong_value
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    dist.barrier()
    started = torch.tensor(time.perf_counter())
    for _ in range(iterations):
        fn()
    mean = (torch.tensor(time.perf_counter()) - started) / iterations
    dist.all_reduce(mean, op=dist.ReduceOp.MAX)
    return mean.item()
