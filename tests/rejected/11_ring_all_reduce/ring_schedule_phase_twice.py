# exercise: ring_schedule
# diagnosis: wrong_value
# hint: second phase repeats the first


def ring_schedule(rank, world_size):
    steps = []
    for _ in range(2):
        for s in range(1, world_size):
            steps.append(((rank - s) % world_size, (rank - s - 1) % world_size))
    return steps
