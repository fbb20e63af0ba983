"""The chunk to receive is without the modulo, so some are −1. Take both chunks % world_size; in
Python the result is never negative.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
def ring_schedule(rank, world_size):
    n = world_size
    first = [((rank - s) % n, (rank - s) % n - 1) for s in range(1, n)]
    return first + [((rank - s + 1) % n, (rank - s + 1) % n - 1) for s in range(1, n)]
