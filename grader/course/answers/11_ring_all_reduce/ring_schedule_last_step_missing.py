"""The last step is missing: there are 2(n − 1), which end with range(1, 2 * n - 1) if you count
from 1.
"""
# exercise: ring_schedule
# diagnosis: wrong_shape
def ring_schedule(rank, world_size):
    n = world_size
    return [((rank - s) % n, (rank - s - 1) % n) for s in range(1, 2 * (n - 1))]
