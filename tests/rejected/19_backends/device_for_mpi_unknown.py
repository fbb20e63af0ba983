# exercise: device_for
# diagnosis: exception
# hint: 'gloo' and 'mpi' raise nothing
# not: ask no GPU | unknown backend has
import torch


def device_for(local_rank, backend):
    if backend == "nccl":
        return torch.device("cuda", local_rank)
    if backend == "gloo":
        return torch.device("cpu")
    raise ValueError(backend)
