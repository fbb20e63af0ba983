"""Each rank waits for a neighbour that does not send to it: in both phases send to (rank + 1) %
n and receive from (rank - 1) % n.
"""
# exercise: ring_all_reduce
# diagnosis: deadlock
# Sends to the left and receives from the left: nobody there has sent to it.


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for s in range(1, n):
        out, mine = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        came = torch.empty_like(mine)
        request = dist.isend(out, left)
        dist.recv(came, left)
        request.wait()
        combine(op, mine, came)
    for s in range(1, n):
        out, mine = chunks[(rank - s + 1) % n], chunks[(rank - s) % n]
        request = dist.isend(out, left)
        dist.recv(mine, left)
        request.wait()
    if op == dist.ReduceOp.AVG:
        x /= n
