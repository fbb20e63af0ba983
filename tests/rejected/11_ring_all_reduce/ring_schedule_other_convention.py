# exercise: ring_schedule
# diagnosis: wrong_value
# hint: the other convention


def ring_schedule(rank, world_size):
    n = world_size
    first = [((rank - s) % n, (rank - s - 1) % n) for s in range(n - 1)]
    second = [((rank - s + 1) % n, (rank - s) % n) for s in range(n - 1)]
    return first + second
