# exercise: device_for
# diagnosis: exception
# hint: For an unknown backend, raise a ValueError
# not: raise nothing
import torch


def device_for(local_rank, backend):
    places = {"nccl": f"cuda:{local_rank}", "gloo": "cpu", "mpi": "cpu"}
    return torch.device(places[backend])
