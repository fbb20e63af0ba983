"""All ranks of a machine are on one GPU now, which NCCL refuses: each needs its own, with the
number local_rank.
"""
# exercise: device_for
# diagnosis: wrong_value
import torch


def device_for(local_rank, backend):
    if backend not in ("nccl", "gloo", "mpi"):
        raise ValueError(backend)
    return torch.device("cuda", 0) if backend == "nccl" else torch.device("cpu")
