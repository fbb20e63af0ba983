# exercise: ring_schedule
# diagnosis: wrong_value
# hint: turns the other way


def ring_schedule(rank, world_size):
    n = world_size
    first = [((rank + s) % n, (rank + s + 1) % n) for s in range(1, n)]
    second = [((rank + s - 1) % n, (rank + s) % n) for s in range(1, n)]
    return first + second
