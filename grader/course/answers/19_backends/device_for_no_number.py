"""'cuda' without a number is the current device, which is cuda:0 on every rank that has not set
another. Return torch.device('cuda', local_rank).
"""
# exercise: device_for
# diagnosis: wrong_value
import torch


def device_for(local_rank, backend):
    if backend not in ("nccl", "gloo", "mpi"):
        raise ValueError(backend)
    return torch.device("cuda" if backend == "nccl" else "cpu")
