"""MPI would carry CPU tensors too, but torch's wheels come without it: return 'gloo'."""
# exercise: pick_backend
# diagnosis: wrong_value
def pick_backend(device_type):
    if device_type not in ("cuda", "cpu"):
        raise ValueError(device_type)
    return "nccl" if device_type == "cuda" else "mpi"
