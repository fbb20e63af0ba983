"""A round is missing: you make n − 2, and on 2 ranks nothing is sent at all. n − 1 rounds are needed;
in the last one your own chunk is added."""
# exercise: ring_reduce_scatter
# diagnosis: wrong_value


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    partial = chunks[rank - 1].clone()
    for s in range(2, n):
        came = swap(partial, (rank + 1) % n, (rank - 1) % n)
        partial = merge(op, came, chunks[(rank - s) % n])
    return finished(partial, op)
