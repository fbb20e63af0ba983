# exercise: training_state_bytes
# diagnosis: none
import torch


def training_state_bytes(params):
    kept = [torch.bfloat16, torch.bfloat16, torch.float32, torch.float32, torch.float32]
    return params * sum(dtype.itemsize for dtype in kept)
