"""The chunk to receive is one above the one that is sent, and has to be one below it: while rank r
sends chunk c, its left neighbour sends chunk c − 1.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
def ring_schedule(rank, world_size):
    n = world_size
    first = [((rank - s) % n, (rank - s + 1) % n) for s in range(1, n)]
    return first + [((rank - s + 1) % n, (rank - s + 2) % n) for s in range(1, n)]
