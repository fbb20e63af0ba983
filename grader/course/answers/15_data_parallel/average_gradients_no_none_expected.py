# exercise: average_gradients
# diagnosis: exception
# hint: p.grad may be None
import torch.distributed as dist


def average_gradients(module):
    for p in module.parameters():
        dist.all_reduce(p.grad)
        p.grad.div_(dist.get_world_size())
