"""Some ranks send while others receive, and the other way round afterwards, so links are idle
and a step takes two rounds or more. Start the send with isend, then recv, then wait: all ranks
send and receive at the same time.
"""
# exercise: ring_all_reduce
# diagnosis: too_many_rounds
# Cannot hang, but each step goes round the ring rank by rank.


def swap(out, into, left, right):
    if dist.get_rank() == 0:
        dist.send(out, right)
        dist.recv(into, left)
    else:
        came = torch.empty_like(into)
        dist.recv(came, left)
        dist.send(out, right)
        into.copy_(came)


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for s in range(1, n):
        out, mine = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        came = torch.empty_like(mine)
        swap(out, came, left, right)
        combine(op, mine, came)
    for s in range(1, n):
        out, mine = chunks[(rank - s + 1) % n], chunks[(rank - s) % n]
        swap(out, mine, left, right)
    if op == dist.ReduceOp.AVG:
        x /= n
