# exercise: broadcast
# diagnosis: deadlock
# hint: wrong rank
# says: rank 0 waits to receive
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(1, dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)
