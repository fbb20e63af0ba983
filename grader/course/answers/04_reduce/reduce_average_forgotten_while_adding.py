"""With AVG, dst has its own x divided by n: what arrives is not added. AVG adds like SUM, and divides
at the end.
"""
# exercise: reduce
# diagnosis: wrong_value


def reduce(x, dst, op):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty_like(x)
    for src in range(n):
        if src != dst:
            dist.recv(buffer, src)
            if op != R.AVG:
                combine(op, x, buffer)
    finish(op, x, n)
