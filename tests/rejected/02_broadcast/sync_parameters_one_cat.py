# exercise: sync_parameters
# diagnosis: wrong_value
# hint: Integers are not what they were
# One message is faster than many; but torch.cat converts counters to float32.
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    tensors = [*module.parameters(), *module.buffers()]
    with torch.no_grad():
        flat = torch.cat([t.flatten() for t in tensors])
        dist.broadcast(flat, src)
        for tensor, piece in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(piece.view_as(tensor))
