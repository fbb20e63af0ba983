"""In the all-gather you send to the left neighbour. Both phases go round the same way: send to
(rank + 1) % n, receive from (rank - 1) % n.
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# alike: messages
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
        combine(op, mine, came)
    own(op, chunks[(rank + BEGIN) % n])
    for s in range(1, n):
        out, mine = chunks[(rank - s + BEGIN + 1) % n], chunks[(rank - s + BEGIN) % n]
        request = dist.isend(out, left)
        dist.recv(mine, right)
        request.wait()
    finish(op, x)
