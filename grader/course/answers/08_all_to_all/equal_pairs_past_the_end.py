"""rank XOR step pairs every rank with every other one only if n is a power of two. With 3 ranks, 1
XOR 2 is 3, which does not exist, and ranks 1 and 2 never meet. Rotate: send to (rank + step) % n,
receive from (rank − step) % n."""
# exercise: all_to_all
# diagnosis: exception


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [chunk.clone() for chunk in chunks]
    for step in range(1, n):
        peer = rank ^ step
        swap(chunks[peer], peer, result[peer], peer)
    return result
