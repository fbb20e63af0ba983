"""Chunks are numbered 0 to n − 1, so they are taken modulo n. Modulo n − 1 the last chunk never
occurs, and modulo n + 1 there is a chunk n.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
# or: MORE = 1

MORE = -1


def ring_schedule(rank, world_size):
    n, modulo = world_size, world_size + MORE
    first = [((rank - s) % modulo, (rank - s - 1) % modulo) for s in range(1, n)]
    return first + [((rank - s + 1) % modulo, (rank - s) % modulo) for s in range(1, n)]
