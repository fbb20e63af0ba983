"""Every rank sends and none receives: a blocking send waits for its receive. Start with request
= dist.isend(...), then recv, then request.wait().
"""
# exercise: ring_all_reduce
# diagnosis: deadlock


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for s in range(1, n):
        out, mine = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        came = torch.empty_like(mine)
        dist.send(out, right)
        dist.recv(came, left)
        combine(op, mine, came)
    for s in range(1, n):
        out, mine = chunks[(rank - s + 1) % n], chunks[(rank - s) % n]
        dist.send(out, right)
        dist.recv(mine, left)
    if op == dist.ReduceOp.AVG:
        x /= n
