# exercise: dp_overlap_ratio
# diagnosis: wrong_type
# hint: Return one number
import torch


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    ratio = bytes_per_element / (2 * tokens) * (dp - 1) / dp * peak_flops / peak_bandwidth
    return torch.tensor(ratio)
