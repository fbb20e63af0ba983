# exercise: time_collective
# diagnosis: none
# Lined up before every call, and every call timed by itself.
import statistics
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    times = []
    for turn in range(warmup + iterations):
        dist.barrier()
        started = time.time()
        fn()
        if turn >= warmup:
            times.append(time.time() - started)
    mine = torch.tensor([statistics.fmean(times)])
    dist.all_reduce(mine, op=dist.ReduceOp.MAX)
    return float(mine)
