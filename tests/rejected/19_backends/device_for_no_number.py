# exercise: device_for
# diagnosis: wrong_value
# hint: without a number
import torch


def device_for(local_rank, backend):
    if backend not in ("nccl", "gloo", "mpi"):
        raise ValueError(backend)
    return torch.device("cuda" if backend == "nccl" else "cpu")
