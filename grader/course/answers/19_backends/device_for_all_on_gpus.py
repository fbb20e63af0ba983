"""Only NCCL's tensors live on a GPU here: gloo's and MPI's are on the CPU."""
# exercise: device_for
# diagnosis: wrong_value
import torch


def device_for(local_rank, backend):
    if backend not in ("nccl", "gloo", "mpi"):
        raise ValueError(backend)
    return torch.device("cuda", local_rank)
