"""There are 2(n − 1) messages, as in a reduce that is followed by a broadcast. That goes up a tree
and down again. If both ranks of a pair send *and* receive, no way down is needed."""
# exercise: recursive_doubling_all_reduce
# diagnosis: too_many_rounds
# earns: 0.5
# or: FLAT = True

FLAT = False


def recursive_doubling_all_reduce(x, op):
    """Up a tree and down again."""
    rank, n = dist.get_rank(), dist.get_world_size()
    steps = [1 << k for k in range((n - 1).bit_length())]
    edges = [(low, low + s) for s in steps for low in range(0, n - s, 2 * s)]
    if FLAT:
        edges = [(0, other) for other in range(1, n)]
    came = torch.empty_like(x)
    for low, high in edges:
        if rank == high:
            dist.send(x, low)
        elif rank == low:
            dist.recv(came, high)
            combine(op, x, came)
    divide(op, x, n)
    for low, high in reversed(edges):
        if rank == low:
            dist.send(x, high)
        elif rank == high:
            dist.recv(x, low)
