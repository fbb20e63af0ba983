# exercise: pick_backend
# diagnosis: wrong_value
# hint: raise ValueError: a default
def pick_backend(device_type):
    return {"cuda": "nccl", "cpu": "gloo"}.get(device_type)
