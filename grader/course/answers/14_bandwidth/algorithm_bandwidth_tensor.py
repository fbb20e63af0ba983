# exercise: algorithm_bandwidth
# diagnosis: wrong_type
# hint: turns a tensor of one element into one
import torch


def algorithm_bandwidth(nbytes, seconds):
    return torch.tensor(nbytes / seconds)
