# exercise: time_collective
# diagnosis: none
import timeit

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    dist.barrier()
    seconds = timeit.timeit(fn, number=iterations) / iterations
    everybody = torch.zeros(dist.get_world_size(), dtype=torch.float64)
    everybody[dist.get_rank()] = seconds
    dist.all_reduce(everybody)
    return everybody.max().item()
