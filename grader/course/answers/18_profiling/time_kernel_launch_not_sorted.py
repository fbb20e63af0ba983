"""The middle of the list is the median only if the times are in order: sort them first. And for a
tensor on the GPU the host's clock measures the launch: there, record a torch.cuda.Event before and
after the call.
"""
# exercise: time_kernel
# diagnosis: wrong_value
import time


def time_kernel(fn, *args, warmup, iterations):
    for _ in range(warmup):
        fn(*args)
    times = []
    for _ in range(iterations):
        started = time.perf_counter()
        fn(*args)
        times.append(1e3 * (time.perf_counter() - started))
    return times[iterations // 2]
