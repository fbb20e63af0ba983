# exercise: device_for
# diagnosis: exception
# hint: What is raised for an unknown backend
# not: raise nothing
import torch


def device_for(local_rank, backend):
    places = {"nccl": f"cuda:{local_rank}", "gloo": "cpu", "mpi": "cpu"}
    return torch.device(places[backend])
