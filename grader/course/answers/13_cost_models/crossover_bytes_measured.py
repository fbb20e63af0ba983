# exercise: crossover_bytes
# diagnosis: forbidden_call
# hint: follows from the arguments
# not: the seconds follow | four arguments
import time

import torch
import torch.distributed as dist


def crossover_bytes(n, alpha, beta):
    size = 1
    x = torch.zeros(size)
    started = time.perf_counter()
    dist.all_reduce(x)
    return size * (time.perf_counter() - started)
