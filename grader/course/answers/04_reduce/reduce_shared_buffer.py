# exercise: reduce
# diagnosis: buffer_race
# hint: one buffer per irecv
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty_like(x)
    requests = [dist.irecv(buffer, src) for src in range(n) if src != dst]
    R = dist.ReduceOp
    for request in requests:
        request.wait()
        if op == R.MIN:
            torch.minimum(x, buffer, out=x)
        elif op == R.MAX:
            torch.maximum(x, buffer, out=x)
        elif op == R.PRODUCT:
            x *= buffer
        else:
            x += buffer
    if op == R.AVG:
        x /= n
