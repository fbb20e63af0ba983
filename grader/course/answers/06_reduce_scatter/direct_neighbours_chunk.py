"""You end with your neighbour's chunk, but rank r should end with chunk r. What rank j needs from
you is chunks[j]."""
# exercise: reduce_scatter
# diagnosis: wrong_value
# or: NEXT = -1

NEXT = 1


def reduce_scatter(chunks, op):
    n = len(chunks)
    return finished(direct([chunks[(j + NEXT) % n] for j in range(n)], op), op)
