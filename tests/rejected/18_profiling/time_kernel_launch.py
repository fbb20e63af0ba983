# exercise: time_kernel
# diagnosis: wrong_value
# hint: measured the launch
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
