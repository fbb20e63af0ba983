"""Your own chunk is not in the result. In every round, the last one too, combine what came with
your own chunk of that number; replacing it is what an all-gather does."""
# exercise: ring_reduce_scatter
# diagnosis: wrong_value
# or: LAST, DIVIDES = False, True
# or: LAST, DIVIDES = False, False

#: Whether only the last chunk is lost, and whether AVG divides.
LAST, DIVIDES = True, True


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    partial = chunks[rank - 1].clone()
    for s in range(2, n + 1):
        came = swap(partial, (rank + 1) % n, (rank - 1) % n)
        combines = LAST and s < n
        partial = merge(op, came, chunks[(rank - s) % n]) if combines else came
    return finished(partial, op) if DIVIDES else partial
