# exercise: sync_parameters
# diagnosis: none
# One broadcast per dtype, of everything laid end to end.
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    tensors = [*module.parameters(), *module.buffers()]
    for dtype in sorted({t.dtype for t in tensors}, key=str):
        some = [t for t in tensors if t.dtype == dtype]
        flat = torch.cat([t.detach().flatten() for t in some])
        dist.broadcast(flat, src)
        with torch.no_grad():
            for t, part in zip(some, flat.split([t.numel() for t in some])):
                t.copy_(part.view_as(t))
