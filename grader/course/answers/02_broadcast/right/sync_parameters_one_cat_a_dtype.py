# exercise: sync_parameters
# diagnosis: none
# One message for each dtype: nothing is converted.
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    by_dtype = {}
    for tensor in [*module.parameters(), *module.buffers()]:
        by_dtype.setdefault(tensor.dtype, []).append(tensor.detach())
    for tensors in by_dtype.values():
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        dist.broadcast(flat, src)
        for tensor, piece in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(piece.view_as(tensor))
