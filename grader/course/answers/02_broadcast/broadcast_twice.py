# exercise: broadcast
# diagnosis: too_many_messages
# hint: although it has it already
import torch.distributed as dist


def broadcast(x, src):
    for _ in range(2):
        if dist.get_rank() == src:
            for dst in range(dist.get_world_size()):
                if dst != src:
                    dist.send(x, dst)
        else:
            dist.recv(x, src)
