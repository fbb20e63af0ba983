"""The average is divided by n twice: perhaps once by the owner of each chunk, and once more
when everything has been gathered. Do one of the two.
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value

def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for s in range(1, n):
        out, mine = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        came = torch.empty_like(mine)
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        combine(op, mine, came)
    if op == dist.ReduceOp.AVG:
        chunks[rank].div_(n)
    for s in range(1, n):
        out, mine = chunks[(rank - s + 1) % n], chunks[(rank - s) % n]
        request = dist.isend(out, right)
        dist.recv(mine, left)
        request.wait()
    if op == dist.ReduceOp.AVG:
        x /= n
