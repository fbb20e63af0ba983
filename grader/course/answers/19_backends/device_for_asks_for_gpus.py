# exercise: device_for
# diagnosis: wrong_value
# hint: do not ask whether the GPU is there
import torch


def device_for(local_rank, backend):
    if backend not in ("nccl", "gloo", "mpi"):
        raise ValueError(backend)
    if backend == "nccl" and local_rank < torch.cuda.device_count():
        return torch.device("cuda", local_rank)
    return torch.device("cpu")
