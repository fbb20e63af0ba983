# exercise: sync_parameters
# diagnosis: wrong_value
# hint: module's own tensors
import torch
import torch.distributed as dist
from torch import nn


def sync_parameters(module, src):
    for child in module.modules():
        for name, parameter in list(child.named_parameters(recurse=False)):
            received = parameter.detach().clone()
            dist.broadcast(received, src)
            setattr(child, name, nn.Parameter(received, requires_grad=parameter.requires_grad))
        for name, buffer in list(child.named_buffers(recurse=False)):
            received = buffer.clone()
            dist.broadcast(received, src)
            setattr(child, name, received)
