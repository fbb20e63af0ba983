"""The length is smaller than n here, so some chunks are empty. You may send them or leave them
out, but both ends have to do the same: let sender and receiver look at the size of the same
chunk.
"""
# exercise: ring_all_reduce
# diagnosis: deadlock
# An empty chunk is sent, but not received.


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for s in range(1, n):
        out, mine = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        came = torch.empty_like(mine)
        request = dist.isend(out, right)
        if len(came):
            dist.recv(came, left)
        request.wait()
        combine(op, mine, came)
    for s in range(1, n):
        out, mine = chunks[(rank - s + 1) % n], chunks[(rank - s) % n]
        request = dist.isend(out, right)
        if len(mine):
            dist.recv(mine, left)
        request.wait()
    if op == dist.ReduceOp.AVG:
        x /= n
