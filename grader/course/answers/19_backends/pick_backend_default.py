"""For a device type without a backend raise ValueError: a default would only fail later, in a
place that is harder to find.
"""
# exercise: pick_backend
# diagnosis: wrong_value
def pick_backend(device_type):
    return "nccl" if device_type == "cuda" else "gloo"
