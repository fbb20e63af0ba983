# exercise: broadcast
# diagnosis: too_many_messages
# hint: although it has it already
# Everybody who has it sends it to everybody after them, who may have it already.
import torch
import torch.distributed as dist


def broadcast(x, src):
    n = dist.get_world_size()
    place = (dist.get_rank() - src) % n
    for earlier in range(place):
        dist.recv(x, (src + earlier) % n)
    for later in range(place + 1, n):
        dist.send(x, (src + later) % n)
