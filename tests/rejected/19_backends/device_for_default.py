# exercise: device_for
# diagnosis: wrong_value
# hint: made up would only fail
# not: has to be
import torch


def device_for(local_rank, backend):
    return torch.device("cuda", local_rank) if backend == "nccl" else torch.device("cpu")
