# exercise: broadcast
# diagnosis: exception
# hint: is left over from the stub
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for r in range(dist.get_world_size()):
            if r != src:
                dist.send(x, r)
    else:
        dist.recv(x, src)
    raise NotImplementedError("write it")
