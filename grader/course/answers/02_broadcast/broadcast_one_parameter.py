# exercise: broadcast
# diagnosis: exception
# hint: keep these parameters
# says: cannot be called as broadcast(x: Tensor, src: int)
import torch.distributed as dist


def broadcast(x):
    dist.recv(x, 0)
