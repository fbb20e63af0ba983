# exercise: pick_backend
# diagnosis: wrong_value
# hint: the other way round
def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise ValueError(device_type)
    return "gloo" if device_type == "cuda" else "nccl"
