"""This works if the first argument is on the device, but here it is a number, and the tensor comes
second. Ask all arguments, not only the first: any(...)."""
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
    if args and isinstance(args[0], torch.Tensor) and args[0].is_cuda:
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
