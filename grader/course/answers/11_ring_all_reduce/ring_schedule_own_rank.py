"""This is the schedule of the rank that runs it: use the argument rank, not dist.get_rank()."""
# exercise: ring_schedule
# diagnosis: wrong_value


def ring_schedule(rank, world_size):
    rank, n = dist.get_rank(), world_size
    first = [((rank - s) % n, (rank - s - 1) % n) for s in range(1, n)]
    return first + [((rank - s + 1) % n, (rank - s) % n) for s in range(1, n)]
