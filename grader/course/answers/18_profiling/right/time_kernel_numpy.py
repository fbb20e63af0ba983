# exercise: time_kernel
# diagnosis: none
# Times in an array, a stream that records, and numpy's median.
import time

import numpy as np
import torch


def time_kernel(fn, *args, warmup, iterations):
    cuda = any(torch.is_tensor(arg) and arg.device.type == "cuda" for arg in args)
    times = np.empty(iterations)
    for i in range(-warmup, iterations):
        if cuda:
            stream = torch.cuda.current_stream()
            begin = stream.record_event(torch.cuda.Event(enable_timing=True))
            fn(*args)
            end = stream.record_event(torch.cuda.Event(enable_timing=True))
            torch.cuda.synchronize()
            milliseconds = begin.elapsed_time(end)
        else:
            started = time.monotonic()
            fn(*args)
            milliseconds = (time.monotonic() - started) * 1e3
        if i >= 0:
            times[i] = milliseconds
    return float(np.median(times))
