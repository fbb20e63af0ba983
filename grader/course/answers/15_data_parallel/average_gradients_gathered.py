# exercise: average_gradients
# diagnosis: forbidden_call
# hint: all_reduce
import torch
import torch.distributed as dist


def average_gradients(module):
    for p in module.parameters():
        mine = torch.zeros_like(p) if p.grad is None else p.grad
        heard = [torch.empty_like(p) for _ in range(dist.get_world_size())]
        dist.all_gather(heard, mine)
        p.grad = torch.stack(heard).mean(0)
