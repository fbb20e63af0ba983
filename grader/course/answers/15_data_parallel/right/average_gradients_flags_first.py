# exercise: average_gradients
# diagnosis: none
import torch
import torch.distributed as dist


def average_gradients(module):
    parameters = list(module.parameters())
    there = torch.tensor([p.grad is not None for p in parameters], dtype=torch.int64)
    dist.all_reduce(there)
    for p, count in zip(parameters, there.tolist()):
        if count == 0:
            continue
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
