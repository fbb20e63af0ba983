# exercise: device_for
# diagnosis: wrong_value
# hint: Only NCCL's tensors
import torch


def device_for(local_rank, backend):
    if backend not in ("nccl", "gloo", "mpi"):
        raise ValueError(backend)
    return torch.device("cuda", local_rank)
