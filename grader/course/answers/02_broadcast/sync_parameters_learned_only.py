"""Only what requires a gradient was sent. Buffers and frozen parameters also differ between ranks.
"""
# exercise: sync_parameters
# diagnosis: wrong_value
# not: state_dict
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    with torch.no_grad():
        for tensor in module.parameters():
            if tensor.requires_grad:
                dist.broadcast(tensor, src)
