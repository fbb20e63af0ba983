"""Each chunk of the result is that of one rank alone. Either what arrives replaces your own part
in the reduce-scatter, where both should be combined; or the all-gather does not begin with the
chunk that came last, which is the finished one.
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# or: FIRST = 1; SECOND = 1
# The all-gather begins with the chunk before the one that is finished.

FIRST = 0
SECOND = 0


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for s in range(1, n):
        out, mine = chunks[(rank - s + FIRST) % n], chunks[(rank - s + FIRST - 1) % n]
        came = torch.empty_like(mine)
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        combine(op, mine, came)
    own(op, chunks[(rank + FIRST) % n])
    for s in range(1, n):
        out, mine = chunks[(rank - s + SECOND) % n], chunks[(rank - s + SECOND - 1) % n]
        request = dist.isend(out, right)
        dist.recv(mine, left)
        request.wait()
    finish(op, x)
