# exercise: sync_parameters
# diagnosis: wrong_value
# hint: the buffers are not
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    with torch.no_grad():
        for parameter in module.parameters():
            dist.broadcast(parameter, src)
