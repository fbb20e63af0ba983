# exercise: broadcast
# diagnosis: missing
# hint: -
import torch.distributed as dist


def brodcast(x, src):
    dist.recv(x, src)
