"""With AVG every step of the second phase divides what comes, and it is divided again on each
rank that it passes. Divide a chunk once, when its sum is complete, and let the second phase only
copy.
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# or: BEFORE = "the owner"
# or: BEFORE = "nobody"
# or: BEFORE = "all"; BEGIN = 1
# or: BEFORE = "the owner"; BEGIN = 1
# or: BEFORE = "nobody"; BEGIN = 1

BEFORE = "all"
BEGIN = 0


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    for s in range(1, n):
        out, mine = chunks[(rank - s + BEGIN) % n], chunks[(rank - s + BEGIN - 1) % n]
        came = torch.empty_like(mine)
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        combine(op, mine, came)
    if op == dist.ReduceOp.AVG and BEFORE != "nobody":
        (x if BEFORE == "all" else chunks[(rank + BEGIN) % n]).div_(n)
    for s in range(1, n):
        out, mine = chunks[(rank - s + BEGIN + 1) % n], chunks[(rank - s + BEGIN) % n]
        request = dist.isend(out, right)
        dist.recv(mine, left)
        request.wait()
        if op == dist.ReduceOp.AVG:
            mine.div_(n)
