# exercise: pick_backend
# diagnosis: none
import torch.distributed as dist

BACKENDS = {"cpu": dist.Backend.GLOO, "cuda": dist.Backend.NCCL}


def pick_backend(device_type):
    try:
        return BACKENDS[device_type]
    except KeyError:
        raise ValueError(device_type) from None
