"""For an unknown backend raise ValueError: a device that is made up would only fail later, in a
place that is harder to find.
"""
# exercise: device_for
# diagnosis: wrong_value
# not: has to be
import torch


def device_for(local_rank, backend):
    return torch.device("cuda", local_rank) if backend == "nccl" else torch.device("cpu")
