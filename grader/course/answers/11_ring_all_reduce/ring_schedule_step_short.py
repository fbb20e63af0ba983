"""Each phase is a step short: range(1, n) has n − 1 numbers, range(1, n - 1) one less."""
# exercise: ring_schedule
# diagnosis: wrong_shape
def ring_schedule(rank, world_size):
    n = world_size
    first = [((rank - s) % n, (rank - s - 1) % n) for s in range(1, n - 1)]
    second = [((rank - s + 1) % n, (rank - s) % n) for s in range(1, n - 1)]
    return first + second
