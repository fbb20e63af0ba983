"""Each chunk goes straight to the rank that owns it, and from there to everybody. In a ring a
chunk only ever goes to the right neighbour; every rank that it passes adds its own part and
sends it on.
"""
# exercise: ring_all_reduce
# diagnosis: not_neighbour
# alike: messages
# Every chunk straight to its owner, and from there to everybody: no ring.


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = cut(x, n)
    mine = chunks[rank]
    for s in range(1, n):
        to, source = (rank + s) % n, (rank - s) % n
        came = torch.empty_like(mine)
        request = dist.isend(chunks[to], to)
        dist.recv(came, source)
        request.wait()
        combine(op, mine, came)
    if op == dist.ReduceOp.AVG:
        mine /= n
    for s in range(1, n):
        to, source = (rank + s) % n, (rank - s) % n
        request = dist.isend(mine, to)
        dist.recv(chunks[source], source)
        request.wait()
