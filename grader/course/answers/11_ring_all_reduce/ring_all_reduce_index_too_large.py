"""An index is past the end. Is it the number of a chunk? Chunks are numbered 0 to n − 1: take it
modulo n. Or does it count steps? There are 2(n − 1) of them, n − 1 in each phase.
"""
# exercise: ring_all_reduce
# diagnosis: exception


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = cut(x, n)
    for s in range(n - 1):
        mine = chunks[rank + s + 1]
        came = torch.empty_like(mine)
        request = dist.isend(chunks[rank + s], (rank - 1) % n)
        dist.recv(came, (rank + 1) % n)
        request.wait()
        mine += came
    for s in range(n - 1):
        request = dist.isend(chunks[rank + s - 1], (rank - 1) % n)
        dist.recv(chunks[rank + s], (rank + 1) % n)
        request.wait()
