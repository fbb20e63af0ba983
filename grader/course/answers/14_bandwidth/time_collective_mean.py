# exercise: time_collective
# diagnosis: wrong_value
# hint: That is the average over ranks. The
# Mean over ranks
import time

import torch
import torch.distributed as dist


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    dist.barrier()
    t = time.perf_counter()
    for _ in range(iterations):
        fn()
    d = torch.tensor((time.perf_counter() - t) / iterations, dtype=torch.float64)
    dist.all_reduce(d)
    return d.item() / dist.get_world_size()
