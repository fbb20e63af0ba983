"""Each phase is a step too long: s = 1 … n − 1 are n − 1 steps, range(1, n)."""
# exercise: ring_schedule
# diagnosis: wrong_shape
def ring_schedule(rank, world_size):
    n = world_size
    first = [((rank - s) % n, (rank - s - 1) % n) for s in range(1, n + 1)]
    return first + [((rank - s + 1) % n, (rank - s) % n) for s in range(1, n + 1)]
