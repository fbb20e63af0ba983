"""The sums are finished, and lie in the wrong places: in the all-gather your index counts upwards. What
goes round to the right arrives in falling order: the chunk that came is the one to send next."""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# or: BEGIN = 1
# alike: messages

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
    for s in range(n - 1):
        out, mine = chunks[(rank + s + BEGIN) % n], chunks[(rank + s + BEGIN + 1) % n]
        came = torch.empty_like(mine)
        request = dist.isend(out.clone(), right)
        dist.recv(came, left)
        request.wait()
        mine.copy_(came)
    finish(op, x)
