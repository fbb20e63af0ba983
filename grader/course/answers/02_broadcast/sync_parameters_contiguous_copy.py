"""A parameter that is not contiguous, such as a transposed weight, keeps its own numbers:
contiguous() and reshape(-1) make a copy of it then, and the broadcast writes into the copy.
Broadcast the tensor itself, or copy the result back: tensor.copy_(...)."""
# exercise: sync_parameters
# diagnosis: wrong_value
# or: WAY = "reshape"
import torch
import torch.distributed as dist

WAY = "contiguous"


def sync_parameters(module, src):
    for tensor in (*module.parameters(), *module.buffers()):
        own = tensor.detach()
        dist.broadcast(own.contiguous() if WAY == "contiguous" else own.reshape(-1), src)
