"""Ranks swap with partners, and one has none: rank ^ step works only if the number of ranks is
a power of two. A ring works for every number: send to (rank + 1) % n, receive from (rank - 1) %
n.
"""
# exercise: ring_all_reduce
# diagnosis: exception
# Recursive doubling: everybody swaps with rank ^ 1, rank ^ 2, ...


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        came = torch.empty_like(x)
        request = dist.isend(x, rank ^ step)
        dist.recv(came, rank ^ step)
        request.wait()
        combine(op, x, came)
        step *= 2
    if op == dist.ReduceOp.AVG:
        x /= n
