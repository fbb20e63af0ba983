# exercise: time_collective
# diagnosis: none
# Without any collective: values of all ranks go around the ring.
import time

import torch
import torch.distributed as dist


def _everyone(value):
    """The values of all ranks, around a ring."""
    rank, n = dist.get_rank(), dist.get_world_size()
    found = [value]
    for _ in range(n - 1):
        heard = torch.empty_like(value)
        request = dist.isend(found[-1], (rank + 1) % n)
        dist.recv(heard, (rank - 1) % n)
        request.wait()
        found.append(heard)
    return found


def time_collective(fn, warmup, iterations):
    for _ in range(warmup):
        fn()
    _everyone(torch.zeros(1))
    started = time.perf_counter()
    for _ in range(iterations):
        fn()
    seconds = time.perf_counter() - started
    means = _everyone(torch.tensor(seconds / iterations, dtype=torch.float64))
    return max(mean.item() for mean in means)
