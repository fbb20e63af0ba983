"""Yours uses events only if all tensors are on the device. One on the device is enough, and the
others may be on the CPU: any(...), and not all(...)."""
# exercise: time_kernel
# diagnosis: wrong_value
# not: measured the launch
import statistics
import time

import torch


def on_device(args):
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    return all(tensor.is_cuda for tensor in tensors) and bool(tensors)


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
