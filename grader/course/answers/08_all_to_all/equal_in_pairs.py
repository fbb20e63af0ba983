"""Ranks meet in pairs, and if their number is odd, one is always idle. Let the peers rotate: in
step s send to (rank + s) % n and receive from (rank − s) % n."""
# exercise: all_to_all
# diagnosis: too_many_rounds
# earns: 0.5


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [chunk.clone() for chunk in chunks]
    for step in range(1, 2 * n):
        peer = rank ^ step
        if peer < n:
            swap(chunks[peer], peer, result[peer], peer)
    return result
