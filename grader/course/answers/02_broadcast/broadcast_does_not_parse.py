# exercise: broadcast
# diagnosis: syntax_error
# hint: -
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src
        dist.send(x, 1)
