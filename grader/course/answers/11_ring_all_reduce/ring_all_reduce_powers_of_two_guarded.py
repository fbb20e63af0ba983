"""Ranks swap with partners, and one has none: rank ^ step works only if the number of ranks is
a power of two. A ring works for every number: send to (rank + 1) % n, receive from (rank - 1) %
n.
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# Recursive doubling that leaves out partners who do not exist.


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        partner = rank ^ step
        step *= 2
        if partner < n:
            came = torch.empty_like(x)
            request = dist.isend(x, partner)
            dist.recv(came, partner)
            request.wait()
            combine(op, x, came)
    if op == dist.ReduceOp.AVG:
        x /= n
