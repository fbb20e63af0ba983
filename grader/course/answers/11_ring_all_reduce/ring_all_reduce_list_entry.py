"""Each sum is a new tensor that only your list of chunks holds: chunks[i] = chunks[i] + came.
The chunk of x stays as it was. Write into it: chunks[i] += came, or torch.maximum(chunks[i],
came, out=chunks[i]).
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# or: BEGIN = 1


BEGIN = 0


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = list(cut(x, n))
    for step in range(2 * (n - 1)):
        own = (rank - 2 - step + BEGIN) % n
        out, mine = chunks[(rank - 1 - step + BEGIN) % n], chunks[own]
        came = torch.empty_like(mine)
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        if step < n - 1:
            chunks[own] = mine.clone()
            combine(op, chunks[own], came)
        else:
            chunks[own] = came
    if op == dist.ReduceOp.AVG:
        x /= n
