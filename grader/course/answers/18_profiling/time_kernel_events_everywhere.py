"""These tensors are on the CPU, where there are no events and nothing to synchronise. Use
time.perf_counter() there, and nothing of torch.cuda."""
# exercise: time_kernel
# diagnosis: exception
# not: enable_timing
import statistics
import time

import torch


def time_kernel(fn, *args, warmup, iterations):
    for _ in range(warmup):
        fn(*args)
    times = []
    if args:
        for _ in range(iterations):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            fn(*args)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end))
        return statistics.median(times)
    for _ in range(iterations):
        started = time.perf_counter()
        fn(*args)
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times)
