# exercise: ring_schedule
# diagnosis: wrong_type
# hint: Leave yield out


def ring_schedule(rank, world_size):
    for s in range(1, world_size):
        yield (rank - s) % world_size, (rank - s - 1) % world_size
    for s in range(1, world_size):
        yield (rank - s + 1) % world_size, (rank - s) % world_size
