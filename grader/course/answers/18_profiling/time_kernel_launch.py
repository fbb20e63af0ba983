"""The host's clock has measured the launch: fn returns once the device has been told what to do,
not when it is done. Record a torch.cuda.Event before and after the call."""
# exercise: time_kernel
# diagnosis: wrong_value
# not: Ask all arguments
# The host's clock for everything.
import statistics
import time

import torch


def time_kernel(fn, *args, warmup, iterations):
    for _ in range(warmup):
        fn(*args)
    times = []
    for _ in range(iterations):
        started = time.perf_counter()
        fn(*args)
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times)
