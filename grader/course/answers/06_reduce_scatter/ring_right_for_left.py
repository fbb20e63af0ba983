"""The messages go to the right, but the chunks are counted as if they went to the left: their
numbers have to go down from round to round. Begin with chunk (rank − 1) % n."""
# exercise: ring_reduce_scatter
# diagnosis: wrong_value
# alike: messages


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [chunk.clone() for chunk in chunks]
    for s in range(1, n):
        came = swap(parts[(rank + s) % n], (rank + 1) % n, (rank - 1) % n)
        mine = (rank + s + 1) % n
        parts[mine] = merge(op, parts[mine], came)
    return finished(parts[rank], op)
