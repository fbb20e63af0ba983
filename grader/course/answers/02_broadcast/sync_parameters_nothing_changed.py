"""Nothing has changed on any rank: is dist.broadcast called on the module's own tensors, or on
copies that are never written back?
"""
# exercise: sync_parameters
# diagnosis: wrong_value
import torch.distributed as dist


def sync_parameters(module, src):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach().clone(), src)
