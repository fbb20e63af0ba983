"""This is the schedule of the rank that runs it. Use the arguments rank and world_size, not
dist.get_rank() and dist.get_world_size(): the function is asked about other rings as well.
"""
# exercise: ring_schedule
# diagnosis: wrong_shape
def ring_schedule(rank, world_size):
    rank, n = dist.get_rank(), dist.get_world_size()
    first = [((rank - s) % n, (rank - s - 1) % n) for s in range(1, n)]
    return first + [((rank - s + 1) % n, (rank - s) % n) for s in range(1, n)]
