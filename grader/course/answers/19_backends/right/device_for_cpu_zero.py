# exercise: device_for
# diagnosis: none
# There is one CPU, and it may have a number.
import torch


def device_for(local_rank, backend):
    index = {"nccl": local_rank, "gloo": 0, "mpi": 0}.get(backend)
    if index is None:
        raise ValueError
    return torch.device("cuda" if backend == "nccl" else "cpu", index)
