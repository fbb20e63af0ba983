# exercise: algorithm_bandwidth
# diagnosis: wrong_type
# hint: of a tensor, .item()
import torch


def algorithm_bandwidth(nbytes, seconds):
    return torch.tensor(nbytes / seconds)
