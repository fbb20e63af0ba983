"""The middle of the list is the median only if the times are in order: sort them first."""
# exercise: time_kernel
# diagnosis: wrong_value
import time

import torch


def time_kernel(fn, *args, warmup, iterations):
    for _ in range(warmup):
        fn(*args)
    times = []
    on_device = any(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args)
    for _ in range(iterations):
        if on_device:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            fn(*args)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end))
        else:
            started = time.perf_counter()
            fn(*args)
            times.append(1e3 * (time.perf_counter() - started))
    return times[iterations // 2]
