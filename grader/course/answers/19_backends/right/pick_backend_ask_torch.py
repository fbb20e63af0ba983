# exercise: pick_backend
# diagnosis: none
# Torch knows it, and raises ValueError itself.
import torch.distributed as dist


def pick_backend(device_type):
    return dist.get_default_backend_for_device(device_type)
