"""For 'cuda' the answer is 'nccl', whatever this machine has: gloo moves GPU tensors by way of the
CPU, if at all.
"""
# exercise: pick_backend
# diagnosis: wrong_value
def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise ValueError(device_type)
    return "gloo"
