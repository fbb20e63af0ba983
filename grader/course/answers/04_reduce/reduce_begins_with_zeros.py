"""Zeros take part in every reduction, as if the total had begun with them. They change MIN, MAX and
PRODUCT: begin with dst's own x.
"""
# exercise: reduce
# diagnosis: wrong_value


def reduce(x, dst, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != dst:
        dist.send(x, dst)
        return
    total, buffer = torch.zeros_like(x), torch.empty_like(x)
    for src in range(n):
        if src != dst:
            dist.recv(buffer, src)
        combine(op, total, x if src == dst else buffer)
    finish(op, total, n)
    x.copy_(total)
