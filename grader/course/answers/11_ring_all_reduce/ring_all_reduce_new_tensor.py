"""x is as it was, although messages were exchanged. Is the result in another tensor? `x = x +
y`, clone() and cat() make new ones. Write into x in the end: x.copy_(result).
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    result = x.clone()
    chunks = cut(result, n)
    for s in range(1, n):
        out, mine = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        came = torch.empty_like(mine)
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        combine(op, mine, came)
    for s in range(1, n):
        out, mine = chunks[(rank - s + 1) % n], chunks[(rank - s) % n]
        request = dist.isend(out, right)
        dist.recv(mine, left)
        request.wait()
    if op == dist.ReduceOp.AVG:
        result /= n
    x = result
