"""The loop is a step short: counted from 1, 2(n − 1) steps end with range(1, 2 * n - 1), and
the first n − 1 of them combine.
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# or: BEGIN = 1


BEGIN = 0


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for step in range(1, 2 * (n - 1)):
        out, mine = chunks[(rank - 1 - step + BEGIN) % n], chunks[(rank - 2 - step + BEGIN) % n]
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
