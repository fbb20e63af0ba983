# exercise: pick_backend
# diagnosis: wrong_value
# hint: raise ValueError: a default
def pick_backend(device_type):
    return "nccl" if device_type == "cuda" else "gloo"
