"""The calls to warm up are in the time. Leave them out."""
# exercise: time_kernel
# diagnosis: wrong_value
import statistics
import time

import torch


def time_kernel(fn, *args, warmup, iterations):
    times = []
    for _ in range(warmup + iterations):
        started = time.perf_counter()
        fn(*args)
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times)
