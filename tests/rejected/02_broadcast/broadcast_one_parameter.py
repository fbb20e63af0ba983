# exercise: broadcast
# diagnosis: exception
# says: cannot be called as broadcast(x: Tensor, src: int)
import torch.distributed as dist


def broadcast(x):
    dist.recv(x, 0)
