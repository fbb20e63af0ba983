# exercise: average_gradients
# diagnosis: deadlock
# hint: has to take part all the same
import torch.distributed as dist


def average_gradients(module):
    for p in module.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
