"""The host's clock was read around a launch and a synchronisation, so the time includes both. Let
a torch.cuda.Event take the time on the device."""
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
        real = fn

        def fn(*args):
            real(*args)
            torch.cuda.synchronize()

    for _ in range(iterations):
        started = time.perf_counter()
        fn(*args)
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times)
