# exercise: tp_overlap_ratio
# diagnosis: forbidden_call
# hint: Nothing is sent or measured
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    import time

    import torch
    import torch.distributed as dist

    started = time.perf_counter()
    dist.all_reduce(torch.zeros(1000))
    return time.perf_counter() - started
