# exercise: sync_parameters
# diagnosis: size_mismatch
# hint: the order of a set differs
# earns: 0.5
import torch.distributed as dist


def sync_parameters(module, src):
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name in set(own):
        dist.broadcast(own[name].data, src)
