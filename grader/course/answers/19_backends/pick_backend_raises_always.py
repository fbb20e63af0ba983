# exercise: pick_backend
# diagnosis: exception
# hint: For 'cuda' and 'cpu' raise nothing
# not: KeyError
import torch


def pick_backend(device_type):
    if device_type == "cuda" and torch.cuda.is_available():
        return "nccl"
    if device_type == "cpu":
        return "gloo"
    raise ValueError(device_type)
