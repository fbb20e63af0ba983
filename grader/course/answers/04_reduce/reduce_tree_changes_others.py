# exercise: reduce
# diagnosis: wrong_value
# hint: must stay as it was
# Ranks inside the tree add up in their own x.
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    R = dist.ReduceOp
    n = dist.get_world_size()
    virtual = (dist.get_rank() - dst) % n
    buffer, step = torch.empty_like(x), 1
    while step < n:
        partner = virtual ^ step
        if virtual & step:
            dist.send(x, (partner + dst) % n)
            return
        if partner < n:
            dist.recv(buffer, (partner + dst) % n)
            if op == R.MIN:
                torch.minimum(x, buffer, out=x)
            elif op == R.MAX:
                torch.maximum(x, buffer, out=x)
            elif op == R.PRODUCT:
                x *= buffer
            else:
                x += buffer
        step <<= 1
    if op == R.AVG:
        x /= n
