# exercise: broadcast
# diagnosis: exception
# hint: right with 2 and 4 ranks
# A tree that is right for 1, 2, 4 and 8 ranks only.
import torch.distributed as dist


def broadcast(x, src):
    n = dist.get_world_size()
    virtual = dist.get_rank() ^ src
    step = 1
    while step < n:
        if virtual < step:
            dist.send(x, (virtual | step) ^ src)
        elif virtual < 2 * step:
            dist.recv(x, (virtual ^ step) ^ src)
        step *= 2
