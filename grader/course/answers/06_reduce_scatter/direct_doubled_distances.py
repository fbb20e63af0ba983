"""From some ranks nothing arrives: the distance doubles, and skips them. Every other rank has a
chunk for you, at each of the distances 1, 2, 3, … up to n − 1."""
# exercise: reduce_scatter
# diagnosis: wrong_value


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = chunks[rank].clone()
    k = 1
    while k < n:
        total = merge(op, total, swap(chunks[(rank + k) % n], (rank + k) % n, (rank - k) % n))
        k *= 2
    return finished(total, op)
