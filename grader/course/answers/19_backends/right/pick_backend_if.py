# exercise: pick_backend
# diagnosis: none
def pick_backend(device_type):
    if device_type == "cuda":
        return "nccl"
    if device_type == "cpu":
        return "gloo"
    raise ValueError(f"no backend for {device_type!r}")
