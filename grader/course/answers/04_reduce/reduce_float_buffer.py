# exercise: reduce
# diagnosis: dtype_mismatch
# hint: same dtype
# not: you sum
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty(x.shape)
    for src in range(n):
        if src != dst:
            dist.recv(buffer, src)
            x += buffer.to(x.dtype)
    if op == dist.ReduceOp.AVG:
        x /= n
