"""With an even number of calls there are two in the middle, and the median is their mean:
statistics.median does that, torch.median takes the lower one."""
# exercise: time_kernel
# diagnosis: wrong_value
import statistics
import time

import torch


def time_kernel(fn, *args, warmup, iterations):
    for _ in range(warmup):
        fn(*args)
    times = []
    if any(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args):
        for _ in range(iterations):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            fn(*args)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end))
        return statistics.median_low(times)
    for _ in range(iterations):
        started = time.perf_counter()
        fn(*args)
        times.append(1e3 * (time.perf_counter() - started))
    return torch.tensor(times, dtype=torch.float64).median().item()
