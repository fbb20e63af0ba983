"""x.float() is a copy of every tensor that is not float32, so the result never reaches x,
and a long integer loses digits. Work on x.view(-1), in the dtype that x has.
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    x = x.float()
    chunks = cut(x, n)
    for step in range(2 * (n - 1)):
        out, mine = chunks[(rank - 1 - step) % n], chunks[(rank - 2 - step) % n]
        came = torch.empty_like(mine)
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        if step < n - 1:
            combine(op, mine, came)
        else:
            mine.copy_(came)
    if op == dist.ReduceOp.AVG:
        x /= n
