"""There is one round too many: n − 1 are enough. Begin with chunk (rank − 1) % n: then the last chunk to
come, in round n − 1, is your own."""
# exercise: ring_reduce_scatter
# diagnosis: too_many_rounds


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    partial = chunks[rank].clone()
    if n == 1:
        return finished(partial, op)
    for s in range(1, n):
        came = swap(partial, (rank + 1) % n, (rank - 1) % n)
        partial = merge(op, came, chunks[(rank - s) % n])
    return finished(swap(partial, (rank + 1) % n, (rank - 1) % n), op)
