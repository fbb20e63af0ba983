# exercise: pick_backend
# diagnosis: exception
# hint: has to be a ValueError
def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise RuntimeError(f"no backend for {device_type}")
    return "nccl" if device_type == "cuda" else "gloo"
