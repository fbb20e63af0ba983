# exercise: device_for
# diagnosis: exception
# hint: do not ask whether the GPU is there
# not: raise nothing
import torch


def device_for(local_rank, backend):
    if backend not in ("nccl", "gloo", "mpi"):
        raise ValueError(backend)
    if backend == "nccl":
        return torch.device("cuda", local_rank % torch.cuda.device_count())
    return torch.device("cpu")
