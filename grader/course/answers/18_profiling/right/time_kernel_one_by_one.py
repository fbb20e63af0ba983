# exercise: time_kernel
# diagnosis: none
# Waits for the end event of each call before the next one; nanoseconds on the host.
from statistics import median
from time import perf_counter_ns

import torch
from torch.cuda import Event, synchronize


def _on_device(args):
    return any(getattr(arg, "is_cuda", False) for arg in args)


def _device_time(fn, args):
    begin, end = Event(enable_timing=True), Event(enable_timing=True)
    begin.record()
    fn(*args)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def _host_time(fn, args):
    started = perf_counter_ns()
    fn(*args)
    return (perf_counter_ns() - started) / 1e6


def time_kernel(fn, *args, warmup: int, iterations: int) -> float:
    once = _device_time if _on_device(args) else _host_time
    for _ in range(warmup):
        fn(*args)
    if _on_device(args):
        synchronize()
    return median([once(fn, args) for _ in range(iterations)])
