# exercise: pick_backend
# diagnosis: wrong_value
# hint: wheels come without
def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise ValueError(device_type)
    return "nccl" if device_type == "cuda" else "mpi"
