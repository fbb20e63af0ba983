# exercise: average_gradients
# diagnosis: wrong_gradient
# hint: stays None
import torch
import torch.distributed as dist


def average_gradients(module):
    for p in module.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
