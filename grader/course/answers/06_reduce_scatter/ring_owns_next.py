"""Your ring is one chunk off: rank r ends with chunk r + 1, complete. That ring sends chunk r
first; begin one earlier, with chunk r − 1."""
# exercise: ring_reduce_scatter
# diagnosis: wrong_value


def ring_reduce_scatter(chunks, op):
    n = len(chunks)
    return finished(ring([chunks[(j + 1) % n] for j in range(n)], op), op)
