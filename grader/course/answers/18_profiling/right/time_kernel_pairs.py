# exercise: time_kernel
# diagnosis: none
# All events are recorded first, and asked after one synchronization.
import statistics
import time

import torch


def time_kernel(fn, *args, warmup, iterations):
    for _ in range(warmup):
        fn(*args)
    if any(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args):
        begins = [torch.cuda.Event(enable_timing=True) for _ in range(iterations)]
        ends = [torch.cuda.Event(enable_timing=True) for _ in range(iterations)]
        for begin, end in zip(begins, ends):
            begin.record()
            fn(*args)
            end.record()
        torch.cuda.synchronize()
        return statistics.median(map(torch.cuda.Event.elapsed_time, begins, ends))
    times = []
    for _ in range(iterations):
        started = time.perf_counter()
        fn(*args)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000
