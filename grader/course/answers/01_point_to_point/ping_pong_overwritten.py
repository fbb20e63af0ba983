# exercise: ping_pong
# diagnosis: wrong_value
# hint: and so loses its own numbers
import torch
import torch.distributed as dist


def ping_pong(x):
    rank = dist.get_rank()
    if rank == 0:
        dist.send(x, dst=1)
        reply = torch.empty_like(x)
        dist.recv(reply, src=1)
        return reply
    if rank == 1:
        dist.recv(x, src=0)
        dist.send(x + 1, dst=0)
    return x.clone()
