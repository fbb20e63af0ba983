# exercise: pick_backend
# diagnosis: wrong_value
# hint: Only the whole words
def pick_backend(device_type):
    if device_type.startswith("cuda"):
        return "nccl"
    if device_type in "cpu":
        return "gloo"
    raise ValueError(device_type)
