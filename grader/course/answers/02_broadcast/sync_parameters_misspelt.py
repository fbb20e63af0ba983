# exercise: sync_parameters
# diagnosis: exception
# hint: Did you mean broadcast?
# not: no_grad | requires a gradient
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.brodcast(tensor, src)
