# exercise: pick_backend
# diagnosis: exception
# hint: KeyError of a dictionary
def pick_backend(device_type):
    return {"cuda": "nccl", "cpu": "gloo"}[device_type]
