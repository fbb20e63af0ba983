"""x on dst is as it was. Combine what comes into x itself, as x += buffer does, or copy the result
into it at the end: `x = x + buffer` makes a new tensor that the caller never sees.
"""
# exercise: reduce
# diagnosis: wrong_value


def reduce(x, dst, op):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    x, buffer = x.clone(), torch.empty_like(x)
    for src in range(n):
        if src != dst:
            dist.recv(buffer, src)
            combine(op, x, buffer)
    finish(op, x, n)
