"""Torch writes the names of backends in small letters: 'nccl', 'gloo'."""
# exercise: pick_backend
# diagnosis: wrong_value
def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise ValueError(device_type)
    return {"cuda": "NCCL", "cpu": "GLOO"}[device_type]
