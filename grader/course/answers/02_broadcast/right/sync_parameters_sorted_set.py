# exercise: sync_parameters
# diagnosis: none
import torch.distributed as dist


def sync_parameters(module, src):
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name in sorted(set(own)):
        dist.broadcast(own[name].data, src)
