# exercise: pick_backend
# diagnosis: wrong_type
# hint: a string such as
def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise ValueError(device_type)
    return device_type, "nccl" if device_type == "cuda" else "gloo"
