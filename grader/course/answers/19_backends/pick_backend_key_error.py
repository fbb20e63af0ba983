# exercise: pick_backend
# diagnosis: exception
# hint: KeyError of a dictionary
# not: raise nothing
def pick_backend(device_type):
    return {"cuda": "nccl", "cpu": "gloo"}[device_type]
