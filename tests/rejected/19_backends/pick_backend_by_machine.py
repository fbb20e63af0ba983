# exercise: pick_backend
# diagnosis: wrong_value
# hint: what this machine has
# not: by way of the CPU
import torch


def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise ValueError(device_type)
    return "nccl" if device_type == "cuda" and torch.cuda.is_available() else "gloo"
