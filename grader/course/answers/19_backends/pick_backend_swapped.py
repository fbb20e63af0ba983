"""It is the other way round: NCCL takes only GPU tensors, and gloo is for the CPU."""
# exercise: pick_backend
# diagnosis: wrong_value
def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise ValueError(device_type)
    return "gloo" if device_type == "cuda" else "nccl"
