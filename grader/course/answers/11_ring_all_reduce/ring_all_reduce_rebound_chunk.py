"""Combining makes a new tensor that only a local name holds: `mine = mine + came` or `mine =
torch.minimum(mine, came)` leaves the chunk of x as it was. Write into the chunk: mine += came, or
torch.minimum(mine, came, out=mine).
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# or: BEGIN = 1
# or: IN_PLACE = (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PRODUCT)
# or: BEGIN = 1; IN_PLACE = (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PRODUCT)


BEGIN = 0
IN_PLACE = ()


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for step in range(2 * (n - 1)):
        out, mine = chunks[(rank - 1 - step + BEGIN) % n], chunks[(rank - 2 - step + BEGIN) % n]
        came = torch.empty_like(mine)
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        if step >= n - 1:
            mine.copy_(came)
        elif op in IN_PLACE:
            combine(op, mine, came)
        else:
            mine = mine + came
    if op == dist.ReduceOp.AVG:
        x /= n
