"""The second phase repeats the first. It begins with the chunk that is finished: rank r sends
chunk r.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
def ring_schedule(rank, world_size):
    steps = []
    for _ in range(2):
        for s in range(1, world_size):
            steps.append(((rank - s) % world_size, (rank - s - 1) % world_size))
    return steps
