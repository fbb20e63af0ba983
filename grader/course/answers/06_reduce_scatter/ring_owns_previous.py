"""Rank r ends with chunk r − 1, complete: the ring is one chunk off. Begin with chunk (rank − 1) %
n."""
# exercise: ring_reduce_scatter
# diagnosis: wrong_value


def ring_reduce_scatter(chunks, op):
    n = len(chunks)
    return finished(ring([chunks[(j - 1) % n] for j in range(n)], op), op)
