"""MPI's tensors are on the CPU here, like gloo's."""
# exercise: device_for
# diagnosis: wrong_value
import torch


def device_for(local_rank, backend):
    if backend not in ("nccl", "gloo", "mpi"):
        raise ValueError(backend)
    return torch.device("cpu") if backend == "gloo" else torch.device("cuda", local_rank)
