# exercise: ring_schedule
# diagnosis: none


def ring_schedule(rank, world_size):
    steps = []
    for s in range(1, world_size):
        steps.append(((rank - s) % world_size, (rank - s - 1) % world_size))
    for s in range(1, world_size):
        steps.append(((rank - s + 1) % world_size, (rank - s) % world_size))
    return steps
