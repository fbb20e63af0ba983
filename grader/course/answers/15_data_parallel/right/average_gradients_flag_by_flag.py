# exercise: average_gradients
# diagnosis: none
import torch
import torch.distributed as dist


@torch.no_grad()
def average_gradients(module):
    for parameter in module.parameters():
        missing = torch.tensor([float(parameter.grad is None)])
        dist.all_reduce(missing, op=dist.ReduceOp.MIN)
        if missing.item():
            continue
        mean = torch.zeros_like(parameter)
        if parameter.grad is not None:
            mean += parameter.grad / dist.get_world_size()
        dist.all_reduce(mean)
        parameter.grad = mean
