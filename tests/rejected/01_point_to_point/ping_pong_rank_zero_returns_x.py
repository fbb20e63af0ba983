# exercise: ping_pong
# diagnosis: wrong_value
# hint: does rank 0 return what comes back
# not: Nothing was added | No message
# The bounce is right, and what comes back is thrown away.
import torch
import torch.distributed as dist


def ping_pong(x):
    y = torch.empty_like(x)
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.recv(y, 1)
    if dist.get_rank() == 1:
        dist.recv(y, 0)
        dist.send(y + 1, 0)
    return x.clone()
