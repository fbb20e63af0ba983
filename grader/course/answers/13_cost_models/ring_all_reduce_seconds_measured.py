# exercise: ring_all_reduce_seconds
# diagnosis: forbidden_call
# hint: Nothing is sent here
import time

import torch
import torch.distributed as dist


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    x = torch.zeros(nbytes // 4)
    started = time.perf_counter()
    dist.all_reduce(x)
    return time.perf_counter() - started
