"""The last elements are not reduced: the length is not divisible by n, and chunks of len // n
elements leave some over. x.view(-1).tensor_split(n) leaves none.
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# Works only where n divides the length.


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    flat = x.view(-1)
    size = len(flat) // n
    chunks = [flat[i * size : (i + 1) * size] for i in range(n)]
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
        x /= n
