# exercise: average_gradients
# diagnosis: wrong_gradient
# hint: drift apart
import torch
import torch.distributed as dist


def average_gradients(module):
    for p in module.parameters():
        total = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        dist.all_reduce(total)
        if p.grad is not None:
            p.grad.copy_(total / dist.get_world_size())
