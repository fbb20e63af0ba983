# exercise: ping_pong
# diagnosis: too_few_messages
# hint: x has to travel
import torch.distributed as dist


def ping_pong(x):
    return x + 1 if dist.get_rank() == 0 else x.clone()
