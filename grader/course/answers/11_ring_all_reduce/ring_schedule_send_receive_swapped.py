"""The pairs are the other way round: the chunk to send comes first."""
# exercise: ring_schedule
# diagnosis: wrong_value
def ring_schedule(rank, world_size):
    n = world_size
    pairs = [((rank - s - 1) % n, (rank - s) % n) for s in range(1, n)]
    pairs += [((rank - s) % n, (rank - s + 1) % n) for s in range(1, n)]
    return pairs
