# exercise: pp_overlap_ratio
# diagnosis: wrong_type
# hint: Return one number
import torch


def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    ratio = bytes_per_element / (32 * hidden * layers_in_next_stage) * peak_flops / peak_bandwidth
    return torch.tensor(ratio)
