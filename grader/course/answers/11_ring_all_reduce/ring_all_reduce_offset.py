"""The all-gather begins with a chunk that is not finished: an index is off by one. If rank r
sends chunk r − 1 first, it owns chunk r after the reduce-scatter; if it sends chunk r first, it
owns chunk r + 1. The owned chunk is the one to send next.
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# or: FIRST = 0; SECOND = 2
# or: FIRST = 1; SECOND = -1
# or: FIRST = 1; SECOND = 0
# or: FIRST = 1; SECOND = 3

FIRST = 0
SECOND = -1


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
