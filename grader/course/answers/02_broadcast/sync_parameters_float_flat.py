# exercise: sync_parameters
# diagnosis: wrong_value
# hint: Integers above 2**24
# One flat float32 vector, loses large ints
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    ts = [t.detach() for t in [*module.parameters(), *module.buffers()]]
    flat = torch.cat([t.reshape(-1).float() for t in ts])
    dist.broadcast(flat, src)
    i = 0
    for t in ts:
        t.copy_(flat[i : i + t.numel()].view_as(t))
        i += t.numel()
