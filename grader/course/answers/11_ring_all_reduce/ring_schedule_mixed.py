"""The first phase is of one convention and the second of the other: after the first, rank r
owns chunk r, so that is what it sends first in the second.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
def ring_schedule(rank, world_size):
    n = world_size
    first = [((rank - s) % n, (rank - s - 1) % n) for s in range(1, n)]
    second = [((rank - s + 1) % n, (rank - s) % n) for s in range(n - 1)]
    return first + second
