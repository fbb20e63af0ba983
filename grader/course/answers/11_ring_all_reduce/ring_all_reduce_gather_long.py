"""There is a step too many: each phase has n − 1 steps, and every rank sends 2(n − 1) messages.
"""
# exercise: ring_all_reduce
# diagnosis: too_many_bytes


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for s in range(1, n):
        out, mine = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        came = torch.empty_like(mine)
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        combine(op, mine, came)
    for s in range(1, n + 1):
        out, mine = chunks[(rank - s + 1) % n], chunks[(rank - s) % n]
        request = dist.isend(out, right)
        dist.recv(mine, left)
        request.wait()
    if op == dist.ReduceOp.AVG:
        x /= n
