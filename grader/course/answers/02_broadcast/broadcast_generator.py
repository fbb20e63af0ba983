# exercise: broadcast
# diagnosis: wrong_type
# hint: Leave yield out
# not: Nothing was sent
# says: generator
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                yield dist.send(x, dst)
    else:
        yield dist.recv(x, src)
