"""As many chunks arrive as should, but not the right ones: what rank j needs from you is
chunks[j]. So the number of the chunk is that of the rank that you send it to."""
# exercise: reduce_scatter
# diagnosis: wrong_value
# or: CHUNK = "own"
# or: CHUNK = "distance"

#: The chunk that is sent: of the rank that one comes from, one's own, or of the distance.
CHUNK = "source"


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = chunks[rank].clone()
    for k in range(1, n):
        number = {"source": (rank - k) % n, "own": rank, "distance": k}[CHUNK]
        total = merge(op, total, swap(chunks[number], (rank + k) % n, (rank - k) % n))
    return finished(total, op)
