# exercise: time_collective
# diagnosis: wrong_value
# hint: more digits than float32
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
