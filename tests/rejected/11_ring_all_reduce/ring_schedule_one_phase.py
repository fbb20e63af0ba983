# exercise: ring_schedule
# diagnosis: wrong_shape
# hint: Only the reduce-scatter


def ring_schedule(rank, world_size):
    return [((rank - s) % world_size, (rank - s - 1) % world_size) for s in range(1, world_size)]
