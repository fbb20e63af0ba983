"""The chunks are not all of one size. The buffer has to be as long as the chunk that arrives:
torch.empty_like(chunks[receive]), anew in each step.
"""
# exercise: ring_all_reduce
# diagnosis: size_mismatch


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    came = torch.empty_like(chunks[0])
    for s in range(1, n):
        out, mine = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        combine(op, mine, came)
    for s in range(1, n):
        out, mine = chunks[(rank - s + 1) % n], chunks[(rank - s) % n]
        request = dist.isend(out, right)
        dist.recv(mine, left)
        request.wait()
    if op == dist.ReduceOp.AVG:
        x /= n
