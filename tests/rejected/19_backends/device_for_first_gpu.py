# exercise: device_for
# diagnosis: wrong_value
# hint: on one GPU now
import torch


def device_for(local_rank, backend):
    if backend not in ("nccl", "gloo", "mpi"):
        raise ValueError(backend)
    return torch.device("cuda", 0) if backend == "nccl" else torch.device("cpu")
