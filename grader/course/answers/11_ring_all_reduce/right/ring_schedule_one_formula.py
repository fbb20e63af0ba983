# exercise: ring_schedule
# diagnosis: none
# Counting down through both phases: the second one stands where the first has ended.
def ring_schedule(rank, world_size):
    n = world_size
    first = [rank - s for s in range(1, n)]
    second = [rank - s for s in range(n - 1)]
    return [(c % n, (c + n - 1) % n) for c in first + second]
