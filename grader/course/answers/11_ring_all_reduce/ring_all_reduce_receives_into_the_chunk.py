"""In the first phase what arrives is received into the very chunk that it should be combined
with, so your own part is gone, and what arrived is combined with itself. Receive into a buffer,
torch.empty_like(chunk).
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# or: BEGIN = 1


BEGIN = 0


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = list(cut(x, n))
    for step in range(2 * (n - 1)):
        own = (rank - 2 - step + BEGIN) % n
        out, mine = chunks[(rank - 1 - step + BEGIN) % n], chunks[own]
        came = mine if step < n - 1 else torch.empty_like(mine)
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        if step < n - 1:
            combine(op, mine, came)
        else:
            mine.copy_(came)
    if op == dist.ReduceOp.AVG:
        x /= n
