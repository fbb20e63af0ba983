# exercise: broadcast
# diagnosis: missing
import torch.distributed as dist


def brodcast(x, src):
    dist.recv(x, src)
