"""For AVG dst is right, but the other ranks divide their x too, and it must stay as it was. Only dst
divides.
"""
# exercise: reduce
# diagnosis: wrong_value


def reduce(x, dst, op):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
    else:
        buffer = torch.empty_like(x)
        for src in range(n):
            if src != dst:
                dist.recv(buffer, src)
                combine(op, x, buffer)
    finish(op, x, n)
