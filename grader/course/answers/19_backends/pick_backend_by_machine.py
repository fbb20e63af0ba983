# exercise: pick_backend
# diagnosis: wrong_value
# hint: whatever this machine has
import torch


def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise ValueError(device_type)
    return "nccl" if device_type == "cuda" and torch.cuda.is_available() else "gloo"
