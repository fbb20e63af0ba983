# exercise: ring_schedule
# diagnosis: none
# One rule: send what came in the step before. Lists are as good as pairs.


def ring_schedule(rank, world_size):
    chunk = rank
    steps = []
    for step in range(2 * (world_size - 1)):
        if step in (0, world_size - 1):
            chunk = (rank - 1 if step == 0 else rank) % world_size
        left = (chunk - 1) % world_size
        steps.append([chunk, left])
        chunk = left
    return steps
