# exercise: sync_parameters
# diagnosis: size_mismatch
# hint: same tensors, in the same order
# not: torch.empty_like
# Odd ranks go through the tensors backwards.
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    tensors = [*module.parameters(), *module.buffers()]
    if dist.get_rank() % 2:
        tensors.reverse()
    with torch.no_grad():
        for tensor in tensors:
            dist.broadcast(tensor, src)
