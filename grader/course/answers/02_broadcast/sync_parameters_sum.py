# exercise: sync_parameters
# diagnosis: forbidden_call
# hint: -
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if dist.get_rank() != src:
                tensor.zero_()
            dist.all_reduce(tensor)
