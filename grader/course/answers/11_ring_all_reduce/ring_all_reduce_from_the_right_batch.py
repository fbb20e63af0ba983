"""Each rank waits for a neighbour that does not send to it: in both phases send to (rank + 1) %
n and receive from (rank - 1) % n.
"""
# exercise: ring_all_reduce
# diagnosis: deadlock


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for step in range(2 * (n - 1)):
        out, mine = chunks[(rank - 1 - step) % n], chunks[(rank - 2 - step) % n]
        came = torch.empty_like(mine)
        batch = [dist.P2POp(dist.isend, out, right), dist.P2POp(dist.irecv, came, right)]
        for request in dist.batch_isend_irecv(batch):
            request.wait()
        if step < n - 1:
            combine(op, mine, came)
        else:
            mine.copy_(came)
    if op == dist.ReduceOp.AVG:
        x /= n
