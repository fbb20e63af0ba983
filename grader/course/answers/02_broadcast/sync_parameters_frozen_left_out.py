"""Frozen parameters were left out. They require no gradient, and differ between ranks all the
same."""
# exercise: sync_parameters
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    with torch.no_grad():
        learned = [p for p in module.parameters() if p.requires_grad]
        for tensor in [*learned, *module.buffers()]:
            dist.broadcast(tensor, src)
