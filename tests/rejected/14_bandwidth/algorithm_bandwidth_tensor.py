# exercise: algorithm_bandwidth
# diagnosis: wrong_type
# hint: Return a float
import torch


def algorithm_bandwidth(nbytes, seconds):
    return torch.tensor(nbytes / seconds)
