# exercise: device_for
# diagnosis: wrong_value
# hint: cuda:local_rank for 'nccl'
import torch


def device_for(local_rank, backend):
    if backend == "nccl":
        return torch.device("cuda", local_rank % 8)
    if backend in ("gloo", "mpi"):
        return torch.device("cpu")
    raise ValueError(backend)
