# exercise: sync_parameters
# diagnosis: exception
# hint: no_grad
import torch.distributed as dist


def sync_parameters(module, src):
    for tensor in [*module.parameters(), *module.buffers()]:
        received = tensor.detach().clone()
        dist.broadcast(received, src)
        tensor.copy_(received)
