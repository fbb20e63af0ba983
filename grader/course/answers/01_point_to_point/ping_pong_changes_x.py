# exercise: ping_pong
# diagnosis: input_changed
# hint: tensor of your own
# says: rank 1: x must stay
import torch
import torch.distributed as dist


def ping_pong(x):
    before = x.clone()
    if dist.get_rank() == 0:
        y = torch.empty_like(x)
        dist.send(x, 1)
        dist.recv(y, 1)
        return y
    if dist.get_rank() == 1:
        dist.recv(x, 0)
        x += 1
        dist.send(x, 0)
    return before
