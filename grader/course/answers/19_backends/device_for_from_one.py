"""GPUs are counted from 0, as local ranks are: cuda:local_rank."""
# exercise: device_for
# diagnosis: wrong_value
import torch


def device_for(local_rank, backend):
    if backend not in ("nccl", "gloo", "mpi"):
        raise ValueError(backend)
    return torch.device("cuda", local_rank + 1) if backend == "nccl" else torch.device("cpu")
