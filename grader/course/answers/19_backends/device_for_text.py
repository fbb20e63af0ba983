# exercise: device_for
# diagnosis: wrong_type
# hint: Return a torch.device
def device_for(local_rank, backend):
    if backend not in ("nccl", "gloo", "mpi"):
        raise ValueError(backend)
    return f"cuda:{local_rank}" if backend == "nccl" else "cpu"
