"""Integers are not what they were. torch.cat converts tensors of several dtypes to one, and a
float32 holds whole numbers up to 2**24 only, a float64 up to 2**53: send each tensor, or each
dtype, by itself.
"""
# exercise: sync_parameters
# diagnosis: wrong_value
# or: SOURCE_TOO = False
# or: WIDE = True
# or: WIDE = True; SOURCE_TOO = False
import torch
import torch.distributed as dist

#: Whether the source, too, ends with what it has sent.
SOURCE_TOO = True
#: Whether all are sent as float64, and not as what torch.cat makes of them.
WIDE = False


def sync_parameters(module, src):
    tensors = [*module.parameters(), *module.buffers()]
    with torch.no_grad():
        flat = torch.cat([t.double().flatten() if WIDE else t.flatten() for t in tensors])
        dist.broadcast(flat, src)
        for tensor, piece in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            if SOURCE_TOO or dist.get_rank() != src:
                tensor.copy_(piece.view_as(tensor))
