"""You ask the first argument, or the first tensor, whether it is on the device. It may be on the CPU,
and a later one on the device: ask all of them, any(...)."""
# exercise: time_kernel
# diagnosis: wrong_value
# or: TENSORS_ALONE = True
# not: measured the launch
import statistics
import time

import torch

TENSORS_ALONE = False


def asked(args):
    args = [arg for arg in args if isinstance(arg, torch.Tensor) or not TENSORS_ALONE]
    return bool(args) and isinstance(args[0], torch.Tensor) and args[0].is_cuda


def time_kernel(fn, *args, warmup, iterations):
    for _ in range(warmup):
        fn(*args)
    times = []
    if asked(args):
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
