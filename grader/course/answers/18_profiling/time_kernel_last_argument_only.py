"""You ask the last argument alone whether it is on the device. It may be on the CPU, and an earlier one
on the device: ask all of them, any(...)."""
# exercise: time_kernel
# diagnosis: wrong_value
# not: measured the launch
import statistics
import time

import torch


def time_kernel(fn, *args, warmup, iterations):
    for _ in range(warmup):
        fn(*args)
    times = []
    if args and isinstance(args[-1], torch.Tensor) and args[-1].is_cuda:
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
