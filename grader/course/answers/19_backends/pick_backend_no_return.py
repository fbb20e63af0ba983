# exercise: pick_backend
# diagnosis: wrong_type
# hint: never returns anything
def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise ValueError(device_type)
    backend = "nccl" if device_type == "cuda" else "gloo"
