"""Each chunk of the result is that of one rank alone. Either what arrives replaces your own part
in the reduce-scatter, where both should be combined; or the all-gather does not begin with the
chunk that came last, which is the finished one.
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# or: BEGIN = 1

BEGIN = 0


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for s in range(1, n):
        out, mine = chunks[(rank - s + BEGIN) % n], chunks[(rank - s + BEGIN - 1) % n]
        came = torch.empty_like(mine)
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        mine.copy_(came)
    for s in range(1, n):
        out, mine = chunks[(rank - s + BEGIN + 1) % n], chunks[(rank - s + BEGIN) % n]
        request = dist.isend(out, right)
        dist.recv(mine, left)
        request.wait()
    if op == dist.ReduceOp.AVG:
        x /= n
