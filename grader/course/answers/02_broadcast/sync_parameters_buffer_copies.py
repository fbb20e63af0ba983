# exercise: sync_parameters
# diagnosis: wrong_value
# hint: only a copy of it
import torch.distributed as dist


def sync_parameters(module, src):
    for parameter in module.parameters():
        dist.broadcast(parameter.data, src)
    for buffer in module.buffers():
        dist.broadcast(buffer.float(), src)
