"""That is your own chunks[rank], with nothing of the others in it. Either what came was not
combined with it, or your ring completes another chunk. In the last round the chunk of your own
number has to come, so begin by sending chunk (rank − 1) % n."""
# exercise: ring_reduce_scatter
# diagnosis: wrong_value
# or: DIVIDES = False

DIVIDES = True


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [chunk.clone() for chunk in chunks]
    for s in range(n - 1):
        came = swap(parts[(rank - s) % n], (rank + 1) % n, (rank - 1) % n)
        mine = (rank - s - 1) % n
        parts[mine] = merge(op, parts[mine], came)
    return finished(parts[rank], op) if DIVIDES else parts[rank]
