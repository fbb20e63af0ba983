# exercise: average_gradients
# diagnosis: wrong_gradient
# hint: its own gradients
import torch.distributed as dist


def average_gradients(module):
    for p in module.parameters():
        mean = p.detach().clone()
        dist.all_reduce(mean)
