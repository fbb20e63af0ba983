"""The first phase is of one convention and the second of the other: rank r has to begin with
chunk r − 1 to own chunk r after the first phase. Let s run from 1.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
def ring_schedule(rank, world_size):
    n = world_size
    first = [((rank - s) % n, (rank - s - 1) % n) for s in range(n - 1)]
    second = [((rank - s + 1) % n, (rank - s) % n) for s in range(1, n)]
    return first + second
