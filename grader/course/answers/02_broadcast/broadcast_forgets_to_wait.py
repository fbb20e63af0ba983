# exercise: broadcast
# diagnosis: unwaited_request
# hint: in a list
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.isend(x, dst)
    else:
        dist.recv(x, src)
