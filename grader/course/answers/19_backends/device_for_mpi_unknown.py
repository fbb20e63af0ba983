# exercise: device_for
# diagnosis: exception
# hint: For 'gloo' and 'mpi' raise nothing
# not: do not ask whether | unknown backend, raise
import torch


def device_for(local_rank, backend):
    if backend == "nccl":
        return torch.device("cuda", local_rank)
    if backend == "gloo":
        return torch.device("cpu")
    raise ValueError(backend)
