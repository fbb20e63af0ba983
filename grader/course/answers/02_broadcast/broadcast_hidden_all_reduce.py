# exercise: broadcast
# diagnosis: forbidden_call
# hint: -
# Zeros everywhere but on src, and the sum of all; the call is caught and hidden.
import torch.distributed as dist


def everyone_adds(x):
    try:
        dist.all_reduce(x)
    except RuntimeError:
        pass


def broadcast(x, src):
    if dist.get_rank() != src:
        x.zero_()
    everyone_adds(x)
