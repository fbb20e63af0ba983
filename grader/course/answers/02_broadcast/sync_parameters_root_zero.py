"""Every rank ends with rank 0's values. The source is src."""
# exercise: sync_parameters
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor, 0)
