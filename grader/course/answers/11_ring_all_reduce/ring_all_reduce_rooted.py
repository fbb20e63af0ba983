"""Every tensor goes to one rank, which sums all of them and sends the sum back: that rank's
link carries everything. In a ring every rank sends chunks, 1/n of x each, and no rank does more
than another.
"""
# exercise: ring_all_reduce
# diagnosis: too_many_bytes
# earns: 0.5
# not: power of two
# Through rank 0: right, and rank 0 has all the work.


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(x, 0)
        dist.recv(x, 0)
        return
    came = torch.empty_like(x)
    for other in range(1, n):
        dist.recv(came, other)
        combine(op, x, came)
    if op == dist.ReduceOp.AVG:
        x /= n
    for other in range(1, n):
        dist.send(x, other)
