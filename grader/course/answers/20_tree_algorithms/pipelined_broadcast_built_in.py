# exercise: pipelined_broadcast
# diagnosis: forbidden_call
# hint: -
import torch
import torch.distributed as dist


def pipelined_broadcast(x, src, pieces):
    for piece in x.view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        dist.broadcast(piece, src)
