"""The parameters are right, the buffers are not: module.buffers() holds what is not learned, such
as the running mean of a batch norm."""
# exercise: sync_parameters
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    with torch.no_grad():
        for parameter in module.parameters():
            dist.broadcast(parameter, src)
