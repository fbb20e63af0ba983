"""Torch's own function knows more devices than the course has backends for: it gives 'gloo' for mps
and 'xccl' for xpu, and raises a RuntimeError for a name that it does not know. Write down the two
that you know, and raise ValueError for everything else."""
# exercise: pick_backend
# diagnosis: wrong_value
import torch.distributed as dist


def pick_backend(device_type):
    return dist.get_default_backend_for_device(device_type)
