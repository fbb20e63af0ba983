"""The result is never above 0 for MIN, or never below 0 for MAX: 0, or a number close to it, takes
part, and is often smaller, or larger, than all the others. Begin with dst's own x.
(torch.finfo(...).tiny is the smallest positive number; .min is the smallest of all.)"""
# exercise: reduce
# diagnosis: wrong_value
# or: FROM_ZEROS = (R.MIN,)
# or: FROM_ZEROS = (R.MAX,)

FROM_ZEROS = (R.MIN, R.MAX)


def reduce(x, dst, op):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty_like(x)
    if op in FROM_ZEROS:
        combine(op, x, torch.zeros_like(x))
    for src in range(n):
        if src != dst:
            dist.recv(buffer, src)
            combine(op, x, buffer)
    finish(op, x, n)
