# exercise: sync_parameters
# diagnosis: none
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    with torch.no_grad():
        for parameter in module.parameters():
            dist.broadcast(parameter, src)
        for buffer in module.buffers():
            dist.broadcast(buffer, src)
