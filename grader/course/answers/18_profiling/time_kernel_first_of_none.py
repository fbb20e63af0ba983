"""There may be no argument at all: any(...) over all of args is False then."""
# exercise: time_kernel
# diagnosis: exception
# or: ASKS_TENSORS_ALONE = True
# not: need not be a tensor
import statistics
import time

import torch

ASKS_TENSORS_ALONE = False


def on_device(arg):
    return arg.is_cuda if isinstance(arg, torch.Tensor) or not ASKS_TENSORS_ALONE else False


def time_kernel(fn, *args, warmup, iterations):
    for _ in range(warmup):
        fn(*args)
    times = []
    if on_device(args[0]):
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
