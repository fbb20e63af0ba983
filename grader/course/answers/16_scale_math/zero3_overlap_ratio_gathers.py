# exercise: zero3_overlap_ratio
# diagnosis: forbidden_call
# hint: Nothing is sent or measured
import torch
import torch.distributed as dist


def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    x = torch.zeros(dp)
    dist.all_gather([torch.zeros(dp)], x)
    return 0.0
