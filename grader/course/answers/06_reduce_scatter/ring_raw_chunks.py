"""Two contributions only: every rank sends its chunks as they are. What travels must be a partial
result, so send what you have combined so far."""
# exercise: ring_reduce_scatter
# diagnosis: wrong_value


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = chunks[rank].clone()
    for s in range(1, n):
        came = swap(chunks[(rank - s) % n], (rank + 1) % n, (rank - 1) % n)
        if s == n - 1:
            total = merge(op, total, came)
    return finished(total, op)
