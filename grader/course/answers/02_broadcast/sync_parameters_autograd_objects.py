"""A parameter requires a gradient, so autograd objects to writing into it: do that under
torch.no_grad()."""
# exercise: sync_parameters
# diagnosis: exception
# or: SLICED = True
import torch.distributed as dist

SLICED = False


def sync_parameters(module, src):
    for tensor in [*module.parameters(), *module.buffers()]:
        received = tensor.detach().clone()
        dist.broadcast(received, src)
        if SLICED:
            tensor[:] = received
        else:
            tensor.copy_(received)
