# exercise: device_for
# diagnosis: none
import torch


def device_for(local_rank, backend):
    if backend == "nccl":
        return torch.device(f"cuda:{local_rank}")
    if backend not in ("gloo", "mpi"):
        raise ValueError(f"unknown backend {backend!r}")
    return torch.device("cpu")
