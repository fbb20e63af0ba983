# exercise: sync_parameters
# diagnosis: wrong_value
# hint: up to 2**24 only
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    tensors = [t.detach() for t in (*module.parameters(), *module.buffers())]
    flat = torch.cat([t.reshape(-1).float() for t in tensors])
    dist.broadcast(flat, src)
    for tensor, piece in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        tensor.copy_(piece.view_as(tensor))
