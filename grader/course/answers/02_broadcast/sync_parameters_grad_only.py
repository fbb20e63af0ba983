# exercise: sync_parameters
# diagnosis: wrong_value
# hint: Frozen parameters were left out. They require
# Only if requires_grad
import torch.distributed as dist


def sync_parameters(module, src):
    for p in module.parameters():
        if p.requires_grad:
            dist.broadcast(p.data, src)
    for b in module.buffers():
        dist.broadcast(b, src)
