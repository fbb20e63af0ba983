"""That is the slowest call; the median is asked for."""
# exercise: time_kernel
# diagnosis: wrong_value
# or: WHERE = ("cpu",)
# or: WHERE = ("cuda",)
import statistics
import time

import torch

WHERE = ("cpu", "cuda")


def time_kernel(fn, *args, warmup, iterations):
    for _ in range(warmup):
        fn(*args)
    times = []
    if any(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args):
        where = "cuda"
        for _ in range(iterations):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            fn(*args)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end))
    else:
        where = "cpu"
        for _ in range(iterations):
            started = time.perf_counter()
            fn(*args)
            times.append(1e3 * (time.perf_counter() - started))
    return max(times) if where in WHERE else statistics.median(times)
