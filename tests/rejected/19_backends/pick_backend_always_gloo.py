# exercise: pick_backend
# diagnosis: wrong_value
# hint: by way of the CPU
# not: what this machine has
def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise ValueError(device_type)
    return "gloo"
