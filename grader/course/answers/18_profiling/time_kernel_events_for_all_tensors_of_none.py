"""Yours uses events if all tensors are on the device, and so if there is no tensor, too. One on the
device is enough, and without any there are no events: any(...), and not all(...)."""
# exercise: time_kernel
# diagnosis: exception
import statistics
import time

import torch


def on_device(args):
    return all(arg.is_cuda for arg in args if isinstance(arg, torch.Tensor))


def time_kernel(fn, *args, warmup, iterations):
    for _ in range(warmup):
        fn(*args)
    times = []
    if on_device(args):
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
